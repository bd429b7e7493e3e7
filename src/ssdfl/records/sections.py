"""The sections of an experiment: every key with its type, limits, default and description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    model_validator,
)

from ssdfl.mappings import without
from ssdfl.records.engines import ENGINES, describe_engines
from ssdfl.records.scores import MOST_SCORES, READINGS

Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Strict(), Field(ge=1)]
OrAll = Annotated[int, Strict(), Field(ge=0)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Strict(), Field(ge=0, lt=2**63)]
Options = dict[str, int | float | str | bool]


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse duplicate values."""
    if len(set(values)) < len(values):
        raise ValueError("each only once")
    return values


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        *others, last = ENGINES
        raise ValueError(f"{', '.join(others)} or {last}")
    return name


PARTITIONS = ("auto", "labels", "dirichlet", "iid", "size", "column", "files")
"""The built-in ways to partition samples."""


def _known_partition(name: str) -> str:
    if name not in PARTITIONS and ":" not in name:
        raise ValueError(f"{', '.join(PARTITIONS)} or module:function")
    return name


def _ascending(values: tuple[float, float]) -> tuple[float, float]:
    if values[0] > values[1]:
        raise ValueError("the least and the most, in this order")
    return values


def _number_or_names(value: Any) -> int | tuple[str, ...]:
    """Check a number or a list of names; pydantic's errors would mention only one of the two."""
    names = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if names and len(set(value)) == len(value):
        return tuple(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("a number of at least 0, or a list of different names")


def _some_positive(values: tuple[float, ...]) -> tuple[float, ...]:
    if not any(values):
        raise ValueError("at least one number above 0")
    return values


NotNegative = Annotated[float, Field(ge=0)]
NumberOrNames = Annotated[int | tuple[str, ...], BeforeValidator(_number_or_names)]
LeastAndMost = Annotated[tuple[NotNegative, NotNegative], AfterValidator(_ascending)]


class Section(BaseModel):
    """A table of the TOML file: unknown keys and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class NetworkSection(Section):
    """The network and its mixing weights."""

    spec: str = Field(
        "sites:sites=4,size=5,seed=0", description="a spec or a file; see `ssdfl graph --help`"
    )
    mixing: Literal["metropolis", "lazy", "fastest"] = Field(
        "metropolis", description="rule for mixing weights"
    )


class ClustersSection(Section):
    """The clusters of SSD-FL."""

    number: OrAll = Field(0, description="S, the number of clusters; 0 lets formation choose")
    plan: str = Field("", description="a plan.json to take the clusters from")
    partition: Literal["cost", "balanced", "paper"] = Field(
        "cost", description="formation: how candidates are made"
    )
    score: str = Field(
        "time", description="time, bytes, drift, stationarity, integrated or module:function"
    )
    mode: Literal["auto", "literal", "fast"] = Field(
        "auto", description="how thorough formation is"
    )
    strict: bool = Field(False, description="respect the conductance threshold, whatever it costs")
    tolerance: Annotated[float, Field(gt=0)] = Field(
        10.0, description="Δ_tol, the tolerated consensus gap"
    )
    gradient_bound: Annotated[float, Field(ge=0)] = Field(
        0.0, description="B; 0 measures it on the task"
    )
    threshold_step: Literal["eta", "eta_E"] = Field(
        "eta", description="the step size in Φ_min: η, as printed, or η times the local steps"
    )
    liars: Annotated[int, Field(ge=0)] = Field(
        0,
        description="number of liars per neighbourhood every cluster must tolerate under trimmed",
    )
    variance_floor: NotNegative = Field(0.1, description="α, the variance floor of gradients")
    optimizer_weights: Annotated[
        tuple[NotNegative, NotNegative, NotNegative], AfterValidator(_some_positive)
    ] = Field(
        (1.0, 1.0, 1.0), description="ζ_1, ζ_2, ζ_3: weights of kind, μ and ρ in α_s", strict=False
    )
    optimizer_amplification: LeastAndMost = Field(
        (0.0, 0.2),
        description="α^{o,min} and α^{o,max}: what optimizers contribute to α_s",
        strict=False,
    )
    data_amplification: LeastAndMost = Field(
        (0.0, 0.2),
        description="α^{d,min} and α^{d,max}: what data contributes to α_s",
        strict=False,
    )


class ScheduleSection(Section):
    """The global cycle."""

    tau_a: Count = Field(5, description="τ_a, training steps of a cycle")
    tau_r: Count = Field(1, description="τ_r, mixing-only steps of a cycle")
    link_probability: Probability = Field(
        0.5, description="how likely a link is up in stc and cstc"
    )


class FaultsSection(Section):
    """Faults during the run."""

    link_loss: Probability = Field(0.0, description="probability that a link fails in a step")
    device_loss: Probability = Field(
        0.0, description="probability that a device is away for a step"
    )
    liars: NumberOrNames = Field(
        0, description="how many devices send false messages, drawn at random, or their names"
    )
    attack: str = Field(
        "sign-flip",
        description="what liars send: sign-flip, noise, same-value, little-is-enough, dissensus or "
        "module:function, with options as in little-is-enough:z=1",
    )


class DataSection(Section):
    """The data, and how devices share them."""

    name: str = Field(
        "digits",
        description="digits, diabetes, housing, logbooks, fmnist, cifar10; a file or folder; or "
        "package.module:function",
    )
    partition: Annotated[str, AfterValidator(_known_partition)] = Field(
        "auto",
        description="how samples are dealt: labels, dirichlet, iid, size, column, files or "
        "module:function; auto: by files or data.column if there are such, by labels if there are "
        "classes, else iid",
    )
    labels_per_device: Count = Field(3, description="for partition = labels: 3 is mild, 1 extreme")
    label_dealing: Literal["even", "random", "shared"] = Field(
        "even",
        description="for partition = labels: even spreads labels over devices as evenly as "
        "possible; random draws them; shared draws them, too, and devices share all samples of a "
        "label, so that their numbers differ",
    )
    alpha: Annotated[float, Field(gt=0)] = Field(0.5, description="for partition = dirichlet")
    size_exponent: NotNegative = Field(
        1.0,
        description="for partition = size: the k-th largest device holds k^-exponent times the "
        "samples of the largest",
    )
    column: str = Field(
        "",
        description="the column that decides which device gets a sample, such as a user or a site; "
        "not an input",
    )
    target: str = Field(
        "", description="the table's column to predict, or several with commas; by default the last"
    )
    targets: Literal["auto", "classes", "numbers", "labels"] = Field(
        "auto",
        description="what a table's targets are; auto: texts and few whole numbers are classes",
    )
    test_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.2, description="share of samples used for testing, if the data do not say"
    )
    train: str = Field(
        "",
        description="on a real device, its own data instead of data.name: a file or folder beside "
        "its experiment.toml, or module:function",
    )
    test: str = Field(
        "",
        description="a real device's own test data; else data.test_share of data.train is "
        "split off",
    )
    encoding: str = Field(
        "",
        description="a JSON file with means, deviations, categories and classes of all devices' "
        "data, from ssdfl data summarise; else real devices agree on them",
    )
    samples_per_device: OrAll = Field(0, description="how many samples each device keeps; 0 is all")
    weights: Literal["equal", "size"] = Field(
        "equal",
        description="how much a device counts in what all learn: all alike, or by its samples",
    )


class ShareSection(Section):
    """What devices disclose about their data, for the formation of clusters."""

    labels: Literal["counts", "rounded", "none"] = Field(
        "counts",
        description="how many samples of each label: exactly, to a power of two, or nothing",
    )
    samples: Literal["auto", "none", "sketch", "raw"] = Field(
        "auto",
        description="16 samples, to neighbours only: none, a random projection, or raw; auto is "
        "none for real devices and devices' own data, and raw, as in the paper, for dealt data",
    )
    gradient_sketch: Literal["auto", "yes", "no"] = Field(
        "auto",
        description="32 numbers of the mean gradient at the initial model; auto: if there are no "
        "labels",
    )


class ModelSection(Section):
    """The model to train."""

    name: str = Field(
        "mlp", description="mlp, logreg, cnn, resnet8, lstm or package.module:factory"
    )
    options: Options = Field(default_factory=dict, description="keyword arguments of the factory")
    initial: str = Field("", description="a safetensors file with parameters to start from")
    buffers: Literal["mix", "local"] = Field(
        "mix", description="mix float buffers such as running means, or keep each device's own"
    )


class TaskSection(Section):
    """The loss, and the scores of tests."""

    loss: str = Field(
        "auto",
        description="cross_entropy, next_token, mse, huber, binary, multilabel or module:function; "
        "auto depends on the data",
    )
    metrics: Annotated[tuple[str, ...], AfterValidator(distinct)] = Field(
        (),
        description="what to test for, the first ranks: accuracy, token_accuracy, perplexity, "
        "binary_accuracy, f1, label_accuracy, r2, mae, rmse or module:function; empty: by the loss",
        max_length=MOST_SCORES,
        strict=False,
    )


class TrainingSection(Section):
    """Local training."""

    learning_rate: Annotated[float, Field(gt=0)] = Field(0.05, description="η")
    rate: str = Field(
        "constant",
        description="how η changes over cycles: constant, step:every=10,factor=0.5, cosine, "
        "inverse_sqrt, warmup:over=5, several joined by +, or module:function",
    )
    batch_size: OrAll = Field(16, description="M, samples of a mini-batch; 0 is the whole shard")
    local_steps: Count = Field(2, description="E, mini-batch steps of one training step")


class OptimizersSection(Section):
    """Each device's optimizer."""

    kind: str = Field(
        "mixed",
        description="mixed draws sgd, momentum or proximal for each device; or one for all: sgd, "
        "momentum, damped, nesterov, proximal, effective (momentum and proximal), adam, adamw, or "
        "module:function, with options as in adam:beta1=0.9,rate=0.001",
    )
    rho: tuple[BelowOne, ...] = Field(
        (0.8, 0.85), description="momenta to draw from", min_length=1, strict=False
    )
    mu: tuple[BelowOne, ...] = Field(
        (5e-5, 1e-4), description="proximal factors to draw from", min_length=1, strict=False
    )
    devices: tuple[str, ...] = Field(
        (), description="one per device instead, such as momentum:0.9", strict=False
    )
    mix: tuple[str, ...] = Field(
        ("sgd", "momentum", "proximal"),
        description="what kind = mixed draws from, one for each device",
        min_length=1,
        strict=False,
    )
    reset: Literal["step", "regime", "never"] = Field(
        "regime",
        description="when momenta are reset: at every training step, at every regime, or never",
    )


class EvaluateSection(Section):
    """Testing."""

    every: OrAll = Field(
        0,
        description="cycles between two tests; 0 picks the interval so that testing takes at most "
        "about 25 % of the time",
    )
    samples: OrAll = Field(1000, description="test samples to use; 0 is all")
    target: float | Literal["auto"] = Field(
        "auto",
        description="of the first metric, for cycles, bytes and seconds to target; auto is 0.85 "
        "for accuracy and none for others",
    )
    gaps: bool = Field(
        False, description="record what the paper's bounds are about, for ssdfl bounds"
    )
    models: Literal["all", "mean"] = Field(
        "all", description="test every device's model and their mean, or (quicker) only the mean"
    )

    @property
    def reading(self) -> str:
        """The metric that is reported as the score."""
        devices, averaged = READINGS
        return devices if self.models == "all" else averaged

    @model_validator(mode="before")
    @classmethod
    def _know_old_name(cls, values: Any) -> Any:
        """Accept ``target_accuracy``, the target's name when accuracy was the only score."""
        if not isinstance(values, dict) or "target_accuracy" not in values:
            return values
        others = without(values, ["target_accuracy"])
        return {"target": values["target_accuracy"], **others}


class EngineSection(Section):
    """The engine that executes the schedule."""

    name: Annotated[str, AfterValidator(_known_engine)] = Field(
        "local", description=describe_engines()
    )
    device: Annotated[str, Field(pattern=r"^\w+(:\d+)?$")] = Field(
        "cpu", description="where tensors live: cpu, cuda, cuda:1"
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32",
        description="the precision of forward and backward passes; parameters and mixing stay "
        "float32",
    )
