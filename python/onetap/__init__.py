"""onetap for Python: runs frozen networks (.tap files) on CPUs.

    import onetap

    model = onetap.Model("model.tap")
    outputs = model(image)                  # numpy array or Pillow image
    print(model.predict(image, top=3))

``onetap.torch`` has the Shift Attention Layer for PyTorch and writes .tap files. It must be imported explicitly;
nothing else here needs PyTorch. docs/python.md has the rest.
"""

from __future__ import annotations

from ._library import library as _c
from .errors import CheckError, DataError, Error, UsageError
from .model import Model, Prediction

__version__: str = _c.onetap_version().decode()

__all__ = ["CheckError", "DataError", "Error", "Model", "Prediction", "UsageError", "__version__"]
