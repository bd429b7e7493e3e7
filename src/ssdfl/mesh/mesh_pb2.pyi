from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Request(_message.Message):
    __slots__ = ("id", "ping", "pull", "gossip", "samples", "holdings", "changes", "model")
    ID_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PULL_FIELD_NUMBER: _ClassVar[int]
    GOSSIP_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    id: int
    ping: Ping
    pull: Pull
    gossip: Gossip
    samples: SampleRequest
    holdings: HoldingsRequest
    changes: ChangesRequest
    model: ModelRequest
    def __init__(self, id: _Optional[int] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., pull: _Optional[_Union[Pull, _Mapping]] = ..., gossip: _Optional[_Union[Gossip, _Mapping]] = ..., samples: _Optional[_Union[SampleRequest, _Mapping]] = ..., holdings: _Optional[_Union[HoldingsRequest, _Mapping]] = ..., changes: _Optional[_Union[ChangesRequest, _Mapping]] = ..., model: _Optional[_Union[ModelRequest, _Mapping]] = ...) -> None: ...

class Response(_message.Message):
    __slots__ = ("id", "status", "parameters", "wait", "absent", "facts", "sample_batch", "refusal", "held", "changed")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_BATCH_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    id: int
    status: Status
    parameters: Parameters
    wait: Wait
    absent: Absent
    facts: Facts
    sample_batch: Samples
    refusal: Refusal
    held: Holdings
    changed: Changes
    def __init__(self, id: _Optional[int] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., parameters: _Optional[_Union[Parameters, _Mapping]] = ..., wait: _Optional[_Union[Wait, _Mapping]] = ..., absent: _Optional[_Union[Absent, _Mapping]] = ..., facts: _Optional[_Union[Facts, _Mapping]] = ..., sample_batch: _Optional[_Union[Samples, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., held: _Optional[_Union[Holdings, _Mapping]] = ..., changed: _Optional[_Union[Changes, _Mapping]] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Status(_message.Message):
    __slots__ = ("step", "first_step", "done", "plan_digest", "witnesses", "membership")
    STEP_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PLAN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    step: int
    first_step: int
    done: bool
    plan_digest: str
    witnesses: _containers.RepeatedCompositeFieldContainer[Witness]
    membership: int
    def __init__(self, step: _Optional[int] = ..., first_step: _Optional[int] = ..., done: _Optional[bool] = ..., plan_digest: _Optional[str] = ..., witnesses: _Optional[_Iterable[_Union[Witness, _Mapping]]] = ..., membership: _Optional[int] = ...) -> None: ...

class ChangesRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class ModelRequest(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class Witness(_message.Message):
    __slots__ = ("device", "step", "plan_digest", "signature", "certificate")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PLAN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    device: str
    step: int
    plan_digest: str
    signature: bytes
    certificate: bytes
    def __init__(self, device: _Optional[str] = ..., step: _Optional[int] = ..., plan_digest: _Optional[str] = ..., signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class Pull(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class Parameters(_message.Message):
    __slots__ = ("step", "dtype", "count", "data")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    step: int
    dtype: str
    count: int
    data: bytes
    def __init__(self, step: _Optional[int] = ..., dtype: _Optional[str] = ..., count: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Wait(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Absent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HoldingsRequest(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, known: _Optional[_Iterable[str]] = ...) -> None: ...

class Holdings(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[Holding]
    def __init__(self, devices: _Optional[_Iterable[_Union[Holding, _Mapping]]] = ...) -> None: ...

class Holding(_message.Message):
    __slots__ = ("device", "summary", "samples", "signature")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    device: str
    summary: str
    samples: int
    signature: Signature
    def __init__(self, device: _Optional[str] = ..., summary: _Optional[str] = ..., samples: _Optional[int] = ..., signature: _Optional[_Union[Signature, _Mapping]] = ...) -> None: ...

class Gossip(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, known: _Optional[_Iterable[str]] = ...) -> None: ...

class Facts(_message.Message):
    __slots__ = ("facts", "digest", "final")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[SignedFact]
    digest: str
    final: bool
    def __init__(self, facts: _Optional[_Iterable[_Union[SignedFact, _Mapping]]] = ..., digest: _Optional[str] = ..., final: _Optional[bool] = ...) -> None: ...

class SignedFact(_message.Message):
    __slots__ = ("fact", "signatures")
    FACT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    fact: bytes
    signatures: _containers.RepeatedCompositeFieldContainer[Signature]
    def __init__(self, fact: _Optional[bytes] = ..., signatures: _Optional[_Iterable[_Union[Signature, _Mapping]]] = ...) -> None: ...

class Signature(_message.Message):
    __slots__ = ("signature", "certificate")
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    signature: bytes
    certificate: bytes
    def __init__(self, signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class Fact(_message.Message):
    __slots__ = ("descriptor", "link")
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    descriptor: Descriptor
    link: LinkFact
    def __init__(self, descriptor: _Optional[_Union[Descriptor, _Mapping]] = ..., link: _Optional[_Union[LinkFact, _Mapping]] = ...) -> None: ...

class Descriptor(_message.Message):
    __slots__ = ("device", "labels", "rho", "mu", "measured", "gradient_bound", "initial_loss", "smoothness", "sketch", "sketch_scale")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    RHO_FIELD_NUMBER: _ClassVar[int]
    MU_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_BOUND_FIELD_NUMBER: _ClassVar[int]
    INITIAL_LOSS_FIELD_NUMBER: _ClassVar[int]
    SMOOTHNESS_FIELD_NUMBER: _ClassVar[int]
    SKETCH_FIELD_NUMBER: _ClassVar[int]
    SKETCH_SCALE_FIELD_NUMBER: _ClassVar[int]
    device: str
    labels: _containers.RepeatedScalarFieldContainer[float]
    rho: float
    mu: float
    measured: bool
    gradient_bound: float
    initial_loss: float
    smoothness: float
    sketch: _containers.RepeatedScalarFieldContainer[float]
    sketch_scale: float
    def __init__(self, device: _Optional[str] = ..., labels: _Optional[_Iterable[float]] = ..., rho: _Optional[float] = ..., mu: _Optional[float] = ..., measured: _Optional[bool] = ..., gradient_bound: _Optional[float] = ..., initial_loss: _Optional[float] = ..., smoothness: _Optional[float] = ..., sketch: _Optional[_Iterable[float]] = ..., sketch_scale: _Optional[float] = ...) -> None: ...

class LinkFact(_message.Message):
    __slots__ = ("a", "b", "distance")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    a: str
    b: str
    distance: float
    def __init__(self, a: _Optional[str] = ..., b: _Optional[str] = ..., distance: _Optional[float] = ...) -> None: ...

class SampleRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Samples(_message.Message):
    __slots__ = ("rows", "columns", "data")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    data: bytes
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
