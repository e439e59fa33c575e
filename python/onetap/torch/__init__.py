"""Shift Attention Layers for PyTorch, in pure PyTorch, and .tap files from PyTorch networks.

    import onetap.torch as sal

    model = sal.convert(model, share=(4, 4))                       # k x k convolutions learn one position per slice
    schedule = sal.TemperatureSchedule(model, steps=epochs * len(loader), harden=0.8)
    for ...:                                                       # your loop
        loss.backward(); optimiser.step(); schedule.step()
    sal.freeze(model, example, "model.tap")                        # run it with onetap.Model, `onetap run`, C or C++

docs/python.md has the rest; docs/layer.md has the formulas.
"""

from ._convert import convert, harden
from ._freeze import freeze
from ._layer import ShiftAttentionConv2d, TemperatureSchedule, fix_taps, hard, layers_of, set_mode, set_temperature

__all__ = [
    "ShiftAttentionConv2d",
    "TemperatureSchedule",
    "convert",
    "fix_taps",
    "freeze",
    "hard",
    "harden",
    "layers_of",
    "set_mode",
    "set_temperature",
]
