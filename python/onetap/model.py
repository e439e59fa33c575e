"""Runs frozen networks (.tap files)."""

from __future__ import annotations

import ctypes
import os
import threading
from types import TracebackType
from typing import Any, NamedTuple, Sequence, Union

import numpy as np

from . import images as _images
from ._library import Options, check, library
from .errors import Error, UsageError

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


class Prediction(NamedTuple):
    """One result of :meth:`Model.predict`."""

    index: int  # type: ignore[assignment]  # in the place of tuple's method
    name: str  # of the class; its index where the file has no names
    probability: float


def _count(value: int, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= most:
        raise UsageError(f"[python] expected {what} from 0 to {most}, got {value!r}")
    return int(value)


class Model:
    """A frozen network prepared for this machine.

    >>> model = onetap.Model("model.tap")                                # doctest: +SKIP
    >>> outputs = model(image)                                           # doctest: +SKIP
    >>> for index, name, probability in model.predict(image, top=3):     # doctest: +SKIP
    ...     print(name, probability)

    ``path``: the file. It is read and checked here, and is not needed afterwards.

    ``threads``: how many threads work on a call; 0 means all CPUs that the process may use.

    ``batch``: usual number of images per call. More than 1 allocates memory for one image per thread: each thread then
    works on its own image, which is faster than all threads working on one image after the other.

    ``target``: kernels by name, such as ``"avx2"`` or ``"plain"``; None selects the best for this CPU, or the
    one that the environment variable ONETAP_TARGET names.

    ``tune``: time alternatives for every layer. This takes seconds once; results are stored in the user's cache folder.

    ``memory_limit``: bytes that the model may use; a network that needs more is refused. 0 means the value of the
    environment variable ONETAP_MEMORY, or 1 GiB.

    Threads: a model may be shared by several Python threads. Its calls take turns, and the interpreter lock is released
    while the network runs. Programs with many callers are faster with one model with one thread per caller. A model
    belongs to the process that opened it: a child made by fork() opens its own; calls of this one are refused there.

    Results are bit-identical for any number of threads and of images in a call.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        threads: int = 0,
        batch: int = 1,
        target: str | None = None,
        tune: bool = False,
        memory_limit: int = 0,
    ) -> None:
        self._session = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._name = os.fsdecode(path)
        name = os.fsencode(path)
        if b"\0" in name:
            raise UsageError(f"[python] expected a path without NUL, got {self._name!r}")
        if target is not None and (not isinstance(target, str) or "\0" in target):
            raise UsageError(f"[python] expected a target that is text without NUL, got {target!r}")
        options = Options(
            target=None if target is None else target.encode(),
            threads=_count(threads, "threads", 1024),
            batch=_count(batch, "a batch", 2**31 - 1),
            tune=int(bool(tune)),
            memory_limit=_count(memory_limit, "a memory limit", 2**63 - 1),
        )
        check(library.onetap_open(name, ctypes.byref(options), ctypes.byref(self._session)))
        self._read_facts()

    def _read_facts(self) -> None:
        shape = (ctypes.c_int64 * 3)()
        check(library.onetap_input_shape(self._session, shape))
        self._input_shape = (shape[0], shape[1], shape[2])
        check(library.onetap_output_shape(self._session, shape))
        self._output_shape = (shape[0],) if shape[1] == shape[2] == 1 else tuple(shape)
        mean, sd = (ctypes.c_float * 3)(), (ctypes.c_float * 3)()
        check(library.onetap_pixel_scale(self._session, mean, sd))
        self._mean = (mean[0], mean[1], mean[2])
        self._sd = (sd[0], sd[1], sd[2])
        self._number_type: str = library.onetap_number_type(self._session).decode()
        self._classes: list[str] | None = None
        if library.onetap_class_name(self._session, 0) is not None:
            count = int(np.prod(self._output_shape))
            names = (library.onetap_class_name(self._session, i) for i in range(count))
            self._classes = [name.decode("utf-8", "replace") for name in names]

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of the image that the network takes; (N, 1, 1) for one that takes a vector of N."""
        return self._input_shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the output for one image: (classes,) for a classifier."""
        return self._output_shape

    @property
    def classes(self) -> list[str] | None:
        """Names of the outputs, or None if the file has none."""
        return None if self._classes is None else list(self._classes)

    @property
    def number_type(self) -> str:
        """What the network computes in: ``"f32"`` or ``"int8"``."""
        return self._number_type

    @property
    def mean(self) -> tuple[float, float, float]:
        """With :attr:`sd`, the scale of the input: (value / 255 - mean) / sd, for red, green and blue."""
        return self._mean

    @property
    def sd(self) -> tuple[float, float, float]:
        """See :attr:`mean`."""
        return self._sd

    def __call__(self, images: Any) -> np.ndarray:
        """The outputs of the network as float32: [outputs] for one image, [images, outputs] for several.

        ``images`` is one of

        - a Pillow image, or a list of them: any size; converted to RGB. A JPEG is turned as its Exif orientation says, as
          in ``onetap run``; images of other formats are not. Grey of 16 bits becomes 8 bits; modes I and F, which have
          no known range, are refused;
        - a uint8 array of RGB pixels, [rows, columns, 3] or [images, rows, columns, 3], or a list of such images, which may
          have different sizes. Pixels are normalised by :attr:`mean` and :attr:`sd`. An image of another size than the
          network's is cropped and resized as in ``onetap run``: a centred square of 7/8 of the shorter side;
        - a floating-point array of network inputs, [channels, rows, columns] or [images, channels, rows,
          columns], already normalised.
        """
        planes, is_one = self._planes(images)
        outputs = self._run(planes)
        return outputs[0] if is_one else outputs

    def predict(self, image: Any, top: int = 5) -> list[Prediction]:
        """The ``top`` most probable classes of one image, best first: softmax of the outputs.

        ``image`` is one image, or a batch or list of one.
        """
        top = _count(top, "top", 2**31 - 1)
        planes, _ = self._planes(image)
        if len(planes) != 1:
            raise UsageError(f"[python] expected one image, got a batch of {len(planes)} (call the model for several)")
        if len(self._output_shape) != 1:
            raise UsageError(f"[python] expected a classifier, got outputs of shape {list(self._output_shape)}")
        outputs = self._run(planes)[0].astype(np.float64)
        if not np.isfinite(outputs).all():
            raise Error(f"[python] expected finite outputs, got nan or inf ({self._name})")
        weights = np.exp(outputs - outputs.max())
        probabilities = weights / weights.sum()
        order = np.argsort(-outputs, kind="stable")[:top]
        names = self._classes
        return [
            Prediction(int(i), str(i) if names is None else names[i], float(probabilities[i])) for i in order
        ]

    def close(self) -> None:
        """Frees the network and ends its threads. Closing twice is allowed."""
        if not self._is_of_this_process():
            self._session = ctypes.c_void_p()
            return
        with self._lock:
            session, self._session = self._session, ctypes.c_void_p()
            library.onetap_close(session)

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session and self._is_of_this_process():
            library.onetap_close(session)

    def __reduce__(self) -> Any:
        raise TypeError("onetap.Model cannot be pickled: open the file where it is needed")

    def __repr__(self) -> str:
        def spelled(shape: Sequence[int]) -> str:
            return "x".join(map(str, shape))

        return f"onetap.Model({self._name!r}, {spelled(self._input_shape)} -> {spelled(self._output_shape)})"

    def _is_of_this_process(self) -> bool:
        # A forked child has none of the threads, and the lock may be held by one of them: it can neither run nor close.
        return self._process == os.getpid()

    def _planes(self, images: Any) -> tuple[np.ndarray, bool]:
        """The images as contiguous [images, channels, rows, columns], and whether a single image was given.

        They are float32, normalised, or uint8 if all images have pixels of the network's size.
        """
        if _images.is_pil_image(images):
            return self._from_pixels(_images.pixels_of(images))[None], True
        if isinstance(images, (list, tuple)):
            if not images:
                return np.empty((0, *self._input_shape), np.float32), False
            each = [self._planes(image) for image in images]
            if not all(is_one for _, is_one in each):
                raise UsageError("[python] expected single images in a list, got a batch")
            return _images.joined([planes for planes, _ in each], self._mean, self._sd), False
        array = np.asarray(images)
        if array.dtype == np.uint8:
            planes = self._from_pixels(array)
            return (planes, False) if array.ndim == 4 else (planes[None], True)
        if not np.issubdtype(array.dtype, np.floating):
            raise UsageError(
                f"[python] expected uint8 pixels or normalised floats, got an array of {array.dtype}"
            )
        return self._from_floats(array)

    def _from_pixels(self, pixels: np.ndarray) -> np.ndarray:
        return _images.planes_of(pixels, self._input_shape, self._mean, self._sd)

    def _from_floats(self, array: np.ndarray) -> tuple[np.ndarray, bool]:
        wanted = self._input_shape
        if wanted[1:] == (1, 1) and array.shape[-1:] == wanted[:1] and array.ndim in (1, 2):
            array = array[..., None, None]  # a network that takes a vector
        is_one = array.ndim == 3
        if array.ndim not in (3, 4) or array.shape[-3:] != wanted:
            hint = ""
            if array.shape[-3:] == (*wanted[1:], wanted[0]):
                hint = " (floats are normalised planes, channels first; pixels are uint8)"
            raise UsageError(
                f"[python] expected floats {list(wanted)} or [images, {', '.join(map(str, wanted))}], "
                f"got {list(array.shape)}{hint}"
            )
        planes = array[None] if is_one else array
        return np.ascontiguousarray(planes, np.float32), is_one

    def _run(self, planes: np.ndarray) -> np.ndarray:
        outputs = np.empty((len(planes), *self._output_shape), np.float32)
        run = library.onetap_run_u8 if planes.dtype == np.uint8 else library.onetap_run
        if not self._is_of_this_process():
            raise UsageError(
                f"[python] expected a model that this process opened, got one from before fork() ({self._name})"
            )
        with self._lock:
            if not self._session:
                raise UsageError(f"[python] expected an open model, got one that was closed ({self._name})")
            check(run(self._session, planes.ctypes.data, len(planes), outputs.ctypes.data))
        return outputs
