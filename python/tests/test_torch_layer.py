"""onetap.torch: the layer against formulas in numpy, conversion, temperature. Forward and backward against the C++ layer
are compared by tests/nn/peer_test.py."""

import copy
import io
import math
import unittest

import numpy as np

from support import TestCase

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("no PyTorch")

import onetap
import onetap.torch as sal


def attention_by_hand(logits, temperature):
    """P = softmax(A / sd(A) / T) of one slice, in float64."""
    logits = np.asarray(logits, np.float64)
    n = logits / np.std(logits, ddof=1)
    e = np.exp((n - n.max()) / temperature)
    return e / e.sum()


class SmallNet(nn.Module):
    """A residual network: 3x3 and 1x1 convolutions, a depthwise one, one module that is used twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, (3, 5), padding=(1, 2)))
        self.twice = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.down = nn.Conv2d(8, 14, 3, stride=2, padding=1, bias=False)
        self.point = nn.Conv2d(14, 6, 1)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(x + self.body(x))
        x = self.twice(torch.relu(self.twice(x)))
        x = self.point(torch.relu(self.down(self.depthwise(x))))
        return self.fc(x.mean((2, 3)))


class Layer(TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def test_the_mask_is_the_formula(self):
        layer = sal.ShiftAttentionConv2d(5, 7, 3, share=(3, 2))
        self.assertEqual(tuple(layer.attention.shape), (3, 3, 9))
        for temperature in (6.7, 0.5):
            sal.set_temperature(layer, temperature)
            mask = layer.mask().detach().numpy()
            for d in range(7):
                for c in range(5):
                    wanted = attention_by_hand(layer.attention.detach().numpy()[d // 3, c // 2], temperature)
                    np.testing.assert_allclose(mask[d, c].reshape(-1), wanted, rtol=2e-6)

    def test_several_taps_take_the_larger(self):
        layer = sal.ShiftAttentionConv2d(2, 3, 3, taps=2)
        sal.set_temperature(layer, 0.7)
        a = layer.attention.detach().numpy()
        for d in range(3):
            for c in range(2):
                wanted = np.maximum(attention_by_hand(a[0, d, c], 0.7), attention_by_hand(a[1, d, c], 0.7))
                np.testing.assert_allclose(layer.mask().detach().numpy()[d, c].reshape(-1), wanted, rtol=2e-6)

    def test_hard_keeps_the_best_positions(self):
        layer = sal.ShiftAttentionConv2d(4, 6, 3, padding=1, bias=False)
        layer.mode = "hard"
        weight = layer.effective_weight().detach().numpy().reshape(6, 4, 9)
        best = layer.attention.detach().numpy().argmax(-1)
        self.assertTrue((np.count_nonzero(weight, axis=2) == 1).all())
        np.testing.assert_array_equal(np.abs(weight).argmax(-1), best)
        np.testing.assert_array_equal(layer.positions().numpy()[..., 0], best)

    def test_hard_ties_and_meetings(self):
        layer = sal.ShiftAttentionConv2d(1, 1, (1, 4), taps=1)
        layer.attention.data[:] = torch.tensor([0.0, 3.0, 3.0, 1.0])
        self.assertEqual(layer.positions().tolist(), [[[1]]])
        two = sal.ShiftAttentionConv2d(1, 1, (1, 4), taps=2)
        # Both taps like position 2 best. Of the rest, position 0 lies least below a maximum, in units of the sd.
        two.attention.data[:] = torch.tensor([[[[2.9, 0.0, 3.0, 1.0]]], [[[0.0, 10.0, 50.0, 20.0]]]])
        self.assertEqual(two.positions().tolist(), [[[0, 2]]])

    def test_straight_through_is_hard_forward_and_soft_backward(self):
        layer = sal.ShiftAttentionConv2d(3, 4, 3, padding=1, bias=False, share="all")
        self.assertEqual(layer.relax, "straight-through")
        self.assertEqual(layer.share, (4, 1))
        sal.set_temperature(layer, 0.7)
        x = torch.randn(2, 3, 6, 5)
        with sal.hard(layer):
            wanted = layer(x)
        self.assertEqual(layer.mode, "soft")
        y = layer(x)
        self.assertTrue(torch.equal(y, wanted))
        probe = torch.randn_like(y)
        (y * probe).sum().backward()
        # dL/dP = g * W summed over the set, through softmax and sd; g is the gradient of a dense convolution's weight.
        dense = (layer.weight * layer.mask()).detach().requires_grad_(True)
        (torch.nn.functional.conv2d(x, dense, padding=1) * probe).sum().backward()
        logits = layer.attention.detach().double().requires_grad_(True)
        p = torch.softmax(logits / logits.std(-1, keepdim=True) / 0.7, -1)
        (p * (dense.grad * layer.weight.detach()).reshape(1, 4, 3, 9).sum(1)).sum().backward()
        self.assert_close(layer.attention.grad, logits.grad, 1e-4)
        self.assert_close(layer.weight.grad, dense.grad * (layer.mask().detach()), 1e-5)

    def test_gradients_are_those_of_finite_differences(self):
        layer = sal.ShiftAttentionConv2d(3, 4, 3, padding=1, share=(2, 2), taps=2, dtype=torch.float64)
        sal.set_temperature(layer, 1.0)
        x = torch.randn(1, 3, 4, 4, dtype=torch.float64, requires_grad=True)

        def forward(x, weight, attention):
            saved = layer.weight, layer.attention
            del layer.weight, layer.attention
            layer.weight, layer.attention = weight, attention
            try:
                return layer(x)
            finally:
                del layer.weight, layer.attention
                layer.weight, layer.attention = saved

        self.assertTrue(torch.autograd.gradcheck(forward, (x, layer.weight, layer.attention)))

    def test_the_scale_of_logits_does_not_matter(self):
        layer = sal.ShiftAttentionConv2d(3, 3, 3)
        wanted = layer.mask().detach().numpy()
        with torch.no_grad():
            for scale in (1e-30, 1e30):
                logits = layer.attention.clone()
                layer.attention.mul_(scale)
                np.testing.assert_allclose(layer.mask().numpy(), wanted, rtol=1e-5)
                layer.attention.copy_(logits)

    def test_equal_logits_give_uniform_attention_and_finite_gradients(self):
        layer = sal.ShiftAttentionConv2d(2, 2, 3)
        layer.attention.data.fill_(0.5)
        np.testing.assert_allclose(layer.mask().detach().numpy(), 1 / 9, rtol=1e-6)
        layer(torch.randn(1, 2, 5, 5)).sum().backward()
        self.assertTrue(torch.isfinite(layer.attention.grad).all())

    def test_centre_start(self):
        layer = sal.ShiftAttentionConv2d(3, 4, 3, init="centre")
        self.assertTrue(torch.equal(layer.attention[..., 4], layer.attention.amax(-1)))

    def test_state_and_copies(self):
        layer = sal.ShiftAttentionConv2d(3, 4, 3, share=2)
        sal.set_temperature(layer, 0.3)
        self.assertEqual(set(layer.state_dict()), {"weight", "bias", "attention", "temperature"})
        buffer = io.BytesIO()
        torch.save(layer.state_dict(), buffer)
        buffer.seek(0)
        other = sal.ShiftAttentionConv2d(3, 4, 3, share=2)
        other.load_state_dict(torch.load(buffer))
        x = torch.randn(1, 3, 5, 5)
        self.assertTrue(torch.equal(layer(x), other(x)))
        self.assertTrue(torch.equal(layer(x), copy.deepcopy(layer)(x)))
        self.assertIn("share=(2, 1)", repr(layer))

    def test_forms_of_share(self):
        for share, block in (
            (4, (4, 1)), ("4", (4, 1)), ("4x3", (4, 3)), ("4x1", (4, 1)), ([4, 3], (4, 3)), ((2, 3), (2, 3)),
            ("all", (8, 1)), ("allx3", (8, 3)), (("all", 3), (8, 3)), (["all", 1], (8, 1)), ("8", (8, 1)),
        ):
            layer = sal.ShiftAttentionConv2d(6, 8, 3, share=share)
            self.assertEqual(layer.share, block, share)
            # The word decides, as in the command.
            self.assertEqual(layer.relax, "straight-through" if "all" in repr(share) else "softmax", share)

    def test_refuses(self):
        make = sal.ShiftAttentionConv2d
        for options, part in (
            ({"taps": 0}, "taps"),
            ({"taps": 10}, "1 to 9"),
            ({"share": 0}, "share"),
            ({"share": 5}, "1 to 4 outputs"),
            ({"share": (1, 4)}, "1 to 3 inputs"),
            ({"share": (1, 1, 1)}, "got (1, 1, 1)"),
            ({"share": []}, "got []"),
            ({"share": "some"}, "got 'some'"),
            ({"share": "5x1"}, "1 to 4 outputs, got '5x1'"),
            ({"share": [1, 4]}, "1 to 3 inputs of a group, got [1, 4]"),
            ({"share": "4xall"}, "share"),
            ({"share": "0x1"}, "share"),
            ({"share": "4x"}, "share"),
            ({"share": " 4"}, "share"),
            ({"share": "４"}, "share"),
            ({"share": (True, 1)}, "share"),
            ({"share": 2.0}, "share"),
            ({"share": ("4", 1)}, "share"),
            ({"share": None}, "share"),
            ({"relax": "hard"}, "relax"),
            ({"init": "zero"}, "init"),
        ):
            with self.assert_error(onetap.UsageError, part):
                make(3, 4, 3, **options)
        with self.assert_error(onetap.UsageError, "more than one position"):
            make(3, 4, 1)
        for temperature in (0, -1, math.inf, math.nan):
            with self.assert_error(onetap.UsageError, "temperature"):
                sal.set_temperature(nn.ReLU(), temperature)
        with self.assert_error(onetap.UsageError, "mode"):
            sal.set_mode(nn.ReLU(), "soggy")


class Convert(TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.net = SmallNet().eval()
        self.x = torch.randn(2, 3, 12, 10)

    def test_the_first_forward_pass_is_the_dense_one(self):
        with torch.no_grad():
            wanted = self.net(self.x)
            for options in ({}, {"share": 1}, {"share": (8, 2), "taps": 2}, {"share": ("all", 4), "relax": "softmax"}):
                converted = sal.convert(self.net, **options)
                self.assert_close(converted(self.x), wanted, 1e-5)
            self.assertTrue(torch.equal(self.net(self.x), wanted))  # it is a copy

    def test_forms_of_share(self):
        for share, block in (
            ((4, 2), (4, 2)), ([4, 2], (4, 2)), ("4x2", (4, 2)), (4, (4, 1)), ("4", (4, 1)), ("all", (8, 1)),
            ("allx2", (8, 2)), (("all", 2), (8, 2)), ("100x100", (8, 8)),  # made smaller
        ):
            body = sal.convert(self.net, share=share).body[0]
            self.assertEqual(body.share, block, share)
            self.assertEqual(body.relax, "straight-through" if "all" in repr(share) else "softmax", share)
        for share in (0, -1, True, 4.0, "4,4", "", [4], [4, 4, 4], [4, 4.5], (4, 0), {4}, None):
            with self.assert_error(onetap.UsageError, f"got {share!r}"):
                sal.convert(self.net, share=share)

    def test_what_is_converted(self):
        converted = sal.convert(self.net)
        names = {name for name, part in converted.named_modules() if isinstance(part, sal.ShiftAttentionConv2d)}
        self.assertEqual(names, {"body.0", "body.2", "twice", "down"})
        self.assertEqual(converted.down.share, (4, 4))
        self.assertEqual(converted.twice.weight.shape[1], 4)
        self.assertEqual(len(sal.layers_of(converted)), 4)
        some = sal.convert(self.net, skip=["first", "body.*"])
        self.assertEqual(len(sal.layers_of(some)), 2)
        self.assertEqual(len(sal.layers_of(sal.convert(self.net, skip=None))), 5)
        by_function = sal.convert(self.net, skip=lambda name, part: part.out_channels != 14)
        self.assertIsInstance(by_function.down, sal.ShiftAttentionConv2d)
        self.assertEqual(len(sal.layers_of(by_function)), 1)

    def test_a_layer_in_two_places_is_converted_and_hardened_in_both(self):
        once = nn.Conv2d(4, 4, 3, padding=1)
        for network in (nn.Sequential(once, nn.ReLU(), once), nn.ModuleDict({"a": nn.Sequential(once), "b": once})):
            converted = sal.convert(network, skip=None)
            kinds = [type(part) for name, part in converted.named_modules(remove_duplicate=False) if name[-1:] in "02b"]
            self.assertNotIn(nn.Conv2d, kinds)
            self.assertEqual(kinds.count(sal.ShiftAttentionConv2d), 2)
            self.assertEqual(len(sal.layers_of(converted)), 1)
            hardened = sal.harden(converted)
            self.assertEqual(sal.layers_of(hardened), [])
            kinds = [type(part) for name, part in hardened.named_modules(remove_duplicate=False) if name[-1:] in "02b"]
            self.assertEqual(kinds.count(nn.Conv2d), 2)
            # By any of its names; a function sees all of them.
            with self.assert_error(onetap.UsageError, "none"):
                sal.convert(network, skip="2" if isinstance(network, nn.Sequential) else "b")
            names = []
            sal.convert(network, skip=lambda name, part: names.append(name))
            self.assertEqual(len(names), 2)

    def test_frozen_parameters_stay_frozen(self):
        self.net.body[0].weight.requires_grad_(False)
        self.net.body[2].bias.requires_grad_(False)
        converted = sal.convert(self.net)
        self.assertIs(type(converted.body[0]), nn.Conv2d)
        self.assertFalse(converted.body[0].weight.requires_grad)
        free = {name: p.requires_grad for name, p in converted.body[2].named_parameters()}
        self.assertEqual(free, {"weight": True, "bias": False, "attention": True})
        self.assertFalse(sal.harden(converted).body[2].bias.requires_grad)
        self.assertTrue(sal.harden(converted).body[2].weight.requires_grad)
        layer = sal.ShiftAttentionConv2d.from_conv(self.net.body[0])
        free = {name: p.requires_grad for name, p in layer.named_parameters()}
        self.assertEqual(free, {"weight": False, "bias": True, "attention": False})
        self.assertFalse(layer.hardened().weight.requires_grad)
        with self.assert_error(onetap.UsageError, "frozen"):
            sal.convert(self.net.requires_grad_(False))

    def test_in_place_and_alone(self):
        self.assertIs(sal.convert(self.net, inplace=True), self.net)
        with self.assert_error(onetap.UsageError, "none"):
            sal.convert(self.net)  # all are converted
        conv = nn.Conv2d(4, 4, 3)
        alone = sal.convert(conv, skip=None)
        self.assertIsInstance(alone, sal.ShiftAttentionConv2d)
        x = torch.randn(1, 4, 5, 5)
        self.assert_close(alone(x).detach(), conv(x).detach(), 1e-5)

    def test_refuses(self):
        with self.assert_error(onetap.UsageError, "nothing.*"):
            sal.convert(self.net, skip="nothing.*")
        with self.assert_error(onetap.UsageError, "none"):
            sal.convert(nn.Sequential(nn.Conv2d(3, 4, 1)))
        with self.assert_error(onetap.UsageError, "temperature"):
            sal.convert(self.net, temperature=0.02)

    def test_training_moves_weights_and_logits_and_harden_keeps_the_hard_function(self):
        net = sal.convert(self.net).train()
        schedule = sal.TemperatureSchedule(net, steps=5)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        before = copy.deepcopy(net.state_dict())
        for _ in range(5):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(self.x), torch.tensor([0, 3])).backward()
            optimiser.step()
            schedule.step()
        for layer in ("down.weight", "down.attention", "body.0.attention"):
            self.assertFalse(torch.equal(net.state_dict()[layer], before[layer]))
        self.assertAlmostEqual(net.down.temperature.item(), 0.02, places=6)
        net.eval()
        plain = sal.harden(net)
        self.assertIs(type(plain.down), nn.Conv2d)
        self.assertIs(plain.down.training, False)
        with torch.no_grad(), sal.hard(net):
            self.assertTrue(torch.equal(plain(self.x), net(self.x)))
        # A block of 4 x 4 slices has its one position in common.
        kept = plain.down.weight.detach().reshape(14, 8, 9) != 0
        for d in range(14):
            for c in range(8):
                self.assertEqual(kept[d, c].nonzero().tolist(), kept[d // 4 * 4, c // 4 * 4].nonzero().tolist())
                self.assertEqual(kept[d, c].sum().item(), 1)


class Schedule(TestCase):
    def test_falls_geometrically(self):
        net = sal.ShiftAttentionConv2d(2, 2, 3)
        schedule = sal.TemperatureSchedule(net, steps=4, start=16.0, end=1.0)
        self.assertEqual(net.temperature.item(), 16.0)
        seen = [schedule.step() for _ in range(5)]
        np.testing.assert_allclose(seen, [8, 4, 2, 1, 1])
        self.assertEqual(net.temperature.item(), 1.0)
        early = sal.TemperatureSchedule(net, steps=8, start=16.0, end=1.0, fall=0.5)
        np.testing.assert_allclose([early.at(i) for i in (0, 2, 4, 7)], [16, 4, 1, 1])
        hard = sal.TemperatureSchedule(net, steps=8, start=16.0, end=1.0, harden=0.5)
        np.testing.assert_allclose([hard.at(i) for i in (0, 2, 3, 4, 8)], [16, 4, 2, 1e-6, 1e-6])
        # 300 epochs of CIFAR-10 in batches of 128, as in the paper's recipe: alpha = 0.99995 per step.
        paper = sal.TemperatureSchedule(net, steps=300 * 391)
        self.assertAlmostEqual(paper.at(1) / paper.at(0), (0.02 / 6.7) ** (1 / 117300))

    def test_resumes(self):
        net = sal.ShiftAttentionConv2d(2, 2, 3)
        schedule = sal.TemperatureSchedule(net, steps=10)
        for _ in range(3):
            schedule.step()
        other = sal.TemperatureSchedule(net, steps=10)
        other.load_state_dict(schedule.state_dict())
        self.assertEqual(other.temperature, schedule.temperature)
        self.assertAlmostEqual(net.temperature.item(), schedule.temperature, places=6)

    OPTIMISERS = (
        lambda net: torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.95, weight_decay=1e-3),
        lambda net: torch.optim.AdamW(net.parameters(), lr=0.5, weight_decay=1e-3),
    )

    def hardening(self, make_optimiser, taps):
        """A layer, its optimiser, and a schedule that is hard after 6 of 12 steps."""
        torch.manual_seed(3)
        net = sal.ShiftAttentionConv2d(4, 8, 3, padding=1, taps=taps)
        schedule = sal.TemperatureSchedule(net, steps=12, start=1.0, end=0.5, harden=0.5)
        return net, make_optimiser(net), schedule

    def train(self, net, optimiser, schedule, steps):
        """The positions kept after every step."""
        kept = []
        for _ in range(steps):
            optimiser.zero_grad()
            (net(torch.randn(4, 4, 6, 6)) * torch.randn(4, 8, 6, 6)).mean().mul(30).backward()
            # DistributedDataParallel waits for a gradient of every parameter that it began with.
            self.assertIsNotNone(net.attention.grad)
            self.assertTrue(torch.isfinite(net.attention.grad).all())
            optimiser.step()
            schedule.step()
            kept.append(net.positions())
        return kept

    def each_hardening(self):
        for make_optimiser in self.OPTIMISERS:
            for taps in (1, 2):
                yield self.hardening(make_optimiser, taps)

    def test_no_tap_moves_once_they_are_fixed(self):
        for net, optimiser, schedule in self.each_hardening():
            kept = self.train(net, optimiser, schedule, 12)
            self.assertFalse(kept[0].equal(kept[5]), "they moved before")
            for positions in kept[6:]:
                self.assertTrue(positions.equal(kept[5]))
            with torch.no_grad(), sal.hard(net):
                hard = net.mask()
            np.testing.assert_allclose(net.mask().detach(), hard, atol=1e-6)

    def test_the_soft_network_is_the_hard_one_once_taps_are_fixed(self):
        x = torch.randn(2, 4, 6, 6)
        for net, optimiser, schedule in self.each_hardening():
            # Before, at step 5, and after the steps of hardening and of the end.
            for steps, is_hard in ((5, False), (1, True), (6, True)):
                self.train(net, optimiser, schedule, steps)
                with torch.no_grad():
                    soft = net(x)
                    with sal.hard(net):
                        hard = net(x)
                self.assertEqual(schedule.is_hard, is_hard)
                gap = (soft - hard).abs().max().item() / hard.abs().max().item()
                if is_hard:
                    self.assertLess(gap, 1e-6)
                else:
                    self.assertGreater(gap, 1e-3, "the comparison sees a soft network")

    def test_a_state_from_before_hardening_trains_the_taps_again(self):
        for net, optimiser, schedule in self.each_hardening():
            self.train(net, optimiser, schedule, 1)
            before = copy.deepcopy((net.state_dict(), optimiser.state_dict(), schedule.state_dict()))
            fixed = self.train(net, optimiser, schedule, 8)[-1]
            for part, state in zip((net, optimiser, schedule), before):
                part.load_state_dict(state)
            kept = self.train(net, optimiser, schedule, 4)
            self.assertGreater(net.attention.unique().numel(), 2, "they are trained logits, not ones and zeros")
            self.assertFalse(net.attention.equal(before[0]["attention"]))
            # The step at which they are fixed, and those after it; other images give other taps than before.
            kept = self.train(net, optimiser, schedule, 7)
            self.assertFalse(kept[0].equal(fixed))
            for positions in kept[1:]:
                self.assertTrue(positions.equal(kept[0]))

    def test_a_hard_state_has_the_taps_of_the_loaded_module(self):
        for net, optimiser, schedule in self.each_hardening():
            kept = self.train(net, optimiser, schedule, 8)[-1]
            saved = copy.deepcopy((net.state_dict(), optimiser.state_dict(), schedule.state_dict()))
            # Into a schedule that is already hard, with other taps.
            self.train(net, optimiser, schedule, 1)
            with torch.no_grad():
                net.attention.copy_(net.attention.flip(-1))
            schedule.load_state_dict(saved[2])
            self.assertFalse(net.positions().equal(kept))
            for part, state in zip((net, optimiser, schedule), saved):
                part.load_state_dict(state)
            for positions in self.train(net, optimiser, schedule, 4):
                self.assertTrue(positions.equal(kept))

    def test_fix_taps_alone_writes_the_logits_once(self):
        for taps in (1, 2):
            net = sal.ShiftAttentionConv2d(4, 8, 3, taps=taps)
            kept = net.positions()
            sal.fix_taps(net)
            self.assertTrue(net.positions().equal(kept))
            self.assertEqual(net.attention.unique().tolist(), [0.0, 1.0])
            self.assertEqual(net.attention.sum().item(), kept.numel())
            self.assertTrue(net.attention.requires_grad)

    def test_refuses(self):
        net = sal.ShiftAttentionConv2d(2, 2, 3)
        for options in ({"steps": 0}, {"steps": 2.5}, {"steps": 5, "end": 0}, {"steps": 5, "fall": 0},
                        {"steps": 5, "harden": 1.5}):
            with self.assertRaises(onetap.UsageError):
                sal.TemperatureSchedule(net, **options)


if __name__ == "__main__":
    unittest.main()
