"""onetap count: the figures of the paper, in every form a person or a program asks for."""
import csv
import io
import json

from support import CommandTest, main


class Count(CommandTest):
    def test_the_papers_network(self):
        table = self.succeeds("count", "resnet20", "--width", 83, "--method", "sal").stdout
        for figure in ("981,609.5", "129,276,152", "2,021,974"):
            self.assertIn(figure, table)

    def test_json_and_csv_agree_with_the_table(self):
        arguments = ["count", "resnet20", "--width", 83, "--method", "sal", "--classes", 100]
        network = json.loads(self.succeeds(*arguments, "--json").stdout)
        self.assertEqual((network["params"], network["macs"], network["activations"]), (1011579.5, 129306032, 2022064))
        for key in ("params", "macs", "activations"):
            self.assertEqual(sum(layer[key] for layer in network["layers"]), network[key])
        rows = list(csv.DictReader(io.StringIO(self.succeeds(*arguments, "--csv").stdout)))
        self.assertEqual(rows[-1]["layer"], "total")
        self.assertEqual(float(rows[-1]["params"]), network["params"])
        self.assertEqual(len(rows), len(network["layers"]) + 1)
        self.assertEqual([float(row["macs"]) for row in rows[:-1]], [layer["macs"] for layer in network["layers"]])

    def test_the_rivals(self):
        for arguments, params, macs, activations in (
                (["shiftresnet110", "--expansion", 6, "--method", "conv"], 1177946, None, None),
                (["asresnet", "--width", 88], 992914, 168963520, None),
                (["mobilenetv2"], 2296922, None, 3595530),
                (["squeezenet"], 734986, None, 734378),
                (["resnet20", "--width", 100, "--method", "bc"], 339394.375, 1579728800, 2512282),
                (["resnet20", "--width", 60, "--method", "bwn", "--bwn-scale", "filter"], 124590.625, 569366880, 1508602)):
            network = json.loads(self.succeeds("count", *arguments, "--json").stdout)
            self.assertEqual(network["params"], params, arguments)
            self.assertIn(macs, (None, network["macs"]), arguments)
            self.assertIn(activations, (None, network["activations"]), arguments)

    def test_plain_rules_and_both_shortcut_countings(self):
        def count(*more):
            return json.loads(self.succeeds("count", "resnet20", "--width", 16, "--json", *more).stdout)

        dense = count("--method", "conv")
        self.assertEqual((dense["params"], dense["activations"]), (272474, 404554))
        plain = count("--method", "sal", "--rules", "plain")
        self.assertEqual(plain["params"], 272474 + 1044 * 256)  # as many logits as weights in the pruned layers
        self.assertEqual(plain["macs"], dense["macs"])
        self.assertEqual(count("--method", "conv", "--shortcuts", "once")["activations"], 404554 - 768 * 16)

    def test_a_frozen_network_is_not_called_the_papers(self):
        network = ["resnet20", "--width", 8, "--share", 3]
        frozen = self.path("m.tap")
        self.succeeds("nets", *network, "--tap", frozen)
        before, after = (self.succeeds("count", *what).stdout for what in (network, [frozen]))
        self.assertIn("paper rules: 32-bit words", before)
        self.assertIn("frozen network: 32-bit words", after)
        self.assertIn("batch norms are folded", after)
        self.assertNotIn("paper rules", after)
        plain = self.succeeds("count", frozen, "--rules", "plain").stdout
        self.assertNotIn("PyTorch", plain)
        self.assertIn("frozen network", plain)
        flags = [json.loads(self.succeeds("count", *what, "--json").stdout) for what in (network, [frozen])]
        self.assertEqual([flag["frozen"] for flag in flags], [False, True])
        # Scale and shift of every channel before, one bias after: 8 (1 + 6) + 16 (6 + 1) + 32 (6 + 1) channels.
        self.assertEqual(flags[0]["params"] - flags[1]["params"], 8 * 7 + 16 * 7 + 32 * 7)

    def test_an_int8_network_is_counted_in_bytes(self):
        frozen, int8 = self.path("m.tap"), self.path("m-int8.tap")
        self.succeeds("nets", "resnet8", "--width", 4, "--share", "4x4", "--tap", frozen)
        self.succeeds("quantize", frozen, "--data", "shapes:train=40,test=20", "--images", 20, "-o", int8)
        floats, network = (json.loads(self.succeeds("count", what, "--json").stdout) for what in (frozen, int8))
        self.assertEqual([floats["type"], network["type"]], ["f32", "int8"])
        for key in ("macs", "activations"):
            self.assertEqual(network[key], floats[key])
        for what, counted in ((frozen, floats), (int8, network)):
            with open(what, "rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            tensors = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
            self.assertEqual(counted["bytes"], sum(end - begin for begin, end in tensors))
            for key in ("bytes", "params"):
                self.assertEqual(sum(layer[key] for layer in counted["layers"]), counted[key])
        self.assertEqual(network["params"], network["bytes"] / 4)
        # 4 x 4 slices share one position of 4 bits: 16 weights, 4 biases of two bytes, 4 steps, base, bias shift, scale.
        layer = next(layer for layer in network["layers"] if layer["name"] == "layer1.0.conv1")
        self.assertEqual(layer["bytes"], 16 + 1 + 8 + 4 + 4 + 1 + 4)
        self.assertEqual(4 * network["peak_activation_bytes"], floats["peak_activation_bytes"])
        table = self.succeeds("count", int8).stdout
        for words in ("int8 network: ", f"of which {network['bytes']:,.0f} are weights", "layer after layer (int8)"):
            self.assertIn(words, table)
        rows = list(csv.DictReader(io.StringIO(self.succeeds("count", int8, "--csv").stdout)))
        self.assertEqual(float(rows[-1]["bytes"]), network["bytes"])
        # Of others: the words that are counted.
        network = json.loads(self.succeeds("count", "resnet20", "--json").stdout)
        self.assertEqual((network["type"], network["bytes"]), ("f32", 4 * network["params"]))

    def test_text_files_and_what_is_wrong(self):
        text = self.succeeds("nets", "resnet20", "--width", 8, "--share", 4, "--text").stdout
        net = self.write("my.net", text)
        self.assertEqual(json.loads(self.succeeds("count", net, "--json").stdout)["params"],
                         json.loads(self.succeeds("count", "resnet20", "--width", 8, "--share", 4,
                                                  "--json").stdout)["params"])
        # A file says itself what its layers are, unless a flag does.
        for network in (["mobilenetv2"], ["squeezenet"], ["shiftresnet20"], ["resnet20", "--method", "conv"]):
            net = self.write("printed.net", self.succeeds("nets", *network, "--text").stdout)
            self.assertEqual(json.loads(self.succeeds("count", net, "--json").stdout)["params"],
                             json.loads(self.succeeds("count", *network, "--json").stdout)["params"])
        self.assertLess(json.loads(self.succeeds("count", net, "--method", "sal", "--json").stdout)["params"], 272474 / 4)
        self.refused(2, "did you mean 'resnet20'", "count", "resnett20")
        self.refused(2, "NETWORK is required", "count")
        self.refused(2, "excludes", "count", "resnet20", "--json", "--csv")
        self.refused(4, "header length", "count", self.write("bad.tap", b"\xff" * 8 + b"{}"))


if __name__ == "__main__":
    main()
