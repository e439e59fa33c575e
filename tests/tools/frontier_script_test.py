"""scripts/frontier: the commands that it starts, by a stand-in that writes them down."""
import os
import pathlib
import subprocess

from support import CommandTest, main, needs_no_training


@needs_no_training
class Script(CommandTest):
    SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")

    def start(self, *arguments, **environment):
        program = self.write("onetap", f"#!/bin/sh\necho \"$@\" >>{self.path('calls')}\n")
        os.chmod(program, 0o755)
        env = {**os.environ, "ONETAP": program, **environment}
        result = subprocess.run([os.path.join(self.SCRIPTS, "frontier"), *arguments], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        calls = self.path("calls")
        return result, pathlib.Path(calls).read_text().splitlines() if os.path.exists(calls) else []

    def test_shift_attention_is_hardened_and_the_recipe_is_of_the_data(self):
        result, calls = self.start("cifar100:/data", self.path("out"), "--epochs", "60")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([call.split()[0] for call in calls], ["sweep"] * 3 + ["frontier"])
        for call in calls[:3]:
            self.assertTrue(call.split()[1].endswith("/recipes/cifar100-fast.toml"), call)
            self.assertTrue(call.endswith(" --epochs 60"), call)
            self.assertEqual("--harden 0.8" in call, "--method sal" in call)
        self.assertEqual(sum("--method sal" in call for call in calls), 2)
        result, calls = self.start("cifar10:/data", self.path("more"), RECIPE=os.path.join(self.SCRIPTS, "frontier"))
        self.assertEqual(calls[4].split()[1], os.path.join(self.SCRIPTS, "frontier"))

    def test_data_without_a_recipe_starts_nothing(self):
        result, calls = self.start("folder:/data", self.path("out"))
        self.assertEqual((result.returncode, calls), (2, []))
        self.assertIn("expected a data set with a recipe (cifar10:DIR, cifar100:DIR)", result.stderr)


if __name__ == "__main__":
    main()
