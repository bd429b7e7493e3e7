"""Every reader of files, messages and texts, with small valid inputs the project makes."""

import atexit
import dataclasses
import gzip
import io
import json
import math
import pickle
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import torch
from google.protobuf.message import DecodeError
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from scipy.sparse import save_npz

from fuzz.mutations import mutated, mutated_csv, mutated_json, mutated_text
from fuzz.structured import (
    mutated_message,
    mutated_npy,
    mutated_npz,
    mutated_parquet,
    with_sha256,
    with_tar_checksum,
)
from helpers import moment, tiny_job
from ssdfl.clusters import Device, form_clusters, read_devices, read_plan
from ssdfl.engine import load_state, run, save_state
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.engine.checkpoint_file import write_tensors
from ssdfl.engine.moves import Standstill
from ssdfl.engine.saved_models import read_model
from ssdfl.errors import InputError
from ssdfl.graph import load_network, read_network, write_network
from ssdfl.graph.files import to_json
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.formats import (
    parse_cifar,
    read_cifar_archive,
    read_idx,
    read_image_parquet,
    readable,
)
from ssdfl.learning.optimizers import parse_optimizer
from ssdfl.learning.rates import find_rate
from ssdfl.learning.readers import read_path
from ssdfl.learning.tables import Reading
from ssdfl.mesh.facts import checked_device, parsed
from ssdfl.mesh.facts_file import read_facts, write_facts
from ssdfl.mesh.folder import DeviceConfig, read_device
from ssdfl.mesh.hosts import read_hosts
from ssdfl.mesh.mesh_pb2 import (
    Descriptor,
    Fact,
    Facts,
    LinkFact,
    Parameters,
    Request,
    Response,
    Samples,
    Signature,
    SignedFact,
)
from ssdfl.mesh.wire import BadMessageError, pack, pack_samples, unpack, unpack_samples
from ssdfl.methods import Message, find_attack, find_method
from ssdfl.methods.rules import find_rule
from ssdfl.records import load_experiment
from ssdfl.records.config import Experiment, to_toml
from ssdfl.records.tables import read_records

NAMES = tuple("abcdef")
NETWORKS = ("barbell:size=3", "sites:sites=2,size=3", "gaia", "star:n=4,latency_s=0.5")
SPECS = (
    *(
        "er:n=12,p=0.3,seed=2",
        "ba:n=9,m=2",
        "rgeo:n=9,radius=0.5",
        "ws:n=9,k=4,p=0.2",
        "complete:n=5",
        "ring:n=7",
    ),
    *(
        "path:n=4",
        "star:n=5",
        "grid:rows=2,cols=3",
        "torus:rows=3,cols=3",
        "sbm:blocks=2,size=4",
        "gaia",
    ),
    *(
        "barbell:size=3",
        "cliques:cliques=3,size=3",
        "sites:sites=3,size=3",
        "ring:n=5,latency_s=0.1,compute_s=1",
    ),
)
METHODS = (
    *(
        "ssdfl",
        "sdfl+gt",
        "cstc+ed",
        "matcha:budget=0.5+atc",
        "gossip+extra",
        "ssdfl+qgm:momentum=0.8",
    ),
    *(
        "sdfl+choco:compressor=topk,fraction=0.01,gamma=0.3",
        "pdfl+outer:rule=gt,rate=0.5",
        "hier+trimmed:number=1",
    ),
    *(
        "ssdfl+clipped:radius=2",
        "ssdfl+atc:compressor=int8,block=64",
        "ssdfl+median",
        "tthf+cta:compressor=sign",
    ),
)
OPTIMIZERS = (
    "sgd",
    "momentum:rho=0.8",
    "prox:mu=0.1",
    "adam:beta1=0.9,lr=0.1",
    "adamw:decay=0.1",
    "nesterov:rho=0.9",
)
RATES = (
    "constant",
    "step:every=3,factor=0.5",
    "cosine:floor=0.1",
    "warmup:over=3",
    "inverse_sqrt",
    "warmup+cosine",
)
ATTACKS = ("sign-flip", "noise:scale=2", "same-value:value=3", "little-is-enough", "dissensus")


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes:
        make: an input, drawn with a `random.Random`.
        read: what reads it, given a folder of its own; what it accepts is checked there, too.
    """

    make: Callable[..., bytes]
    read: Callable[[bytes, Path], object]


def _from_file(ending, read):
    """A reader of a file of a folder."""

    def use(content, folder):
        path = folder / f"input{ending}"
        path.write_bytes(content)
        return read(path)

    return use


def _written(ending, *writers):
    """What functions write to a path."""
    with TemporaryDirectory() as folder:
        contents = []
        for write in writers:
            path = Path(folder) / f"input{ending}"
            write(path)
            contents.append(path.read_bytes())
    return contents


def _network_target(ending, change):
    @cache
    def corpus():
        networks = [load_network(spec) for spec in NETWORKS]
        return _written(
            ending, *[lambda path, one=one: write_network(one, path) for one in networks]
        )

    def read(path):
        network = read_network(path)
        assert network.num_devices == len(network.names)
        assert np.isfinite(network.message_time_s(100)).all()

    return Target(lambda draw: change(draw, corpus()), _from_file(ending, read))


def _either(draw, structured, corpus, share=0.7):
    """A change within a format, or of any bytes."""
    return structured() if draw.random() < share else mutated(draw, corpus)


@cache
def _arrays_of(*contents):
    """The arrays of files, by name."""
    return [dict(np.load(io.BytesIO(content))) for content in contents]


def _npz(draw, corpus):
    return _either(draw, lambda: mutated_npz(draw, _arrays_of(*corpus)), corpus)


def _npy(draw, corpus):
    return _either(draw, lambda: mutated_npy(draw, _matrices()), corpus)


@cache
def _matrices():
    return [load_network(spec).adjacency.toarray() for spec in NETWORKS]


@cache
def _network_documents():
    return [to_json(load_network(spec)) for spec in NETWORKS]


def _network_json(draw):
    return json.dumps(mutated_json(draw, draw.choice(_network_documents()))).encode()


@cache
def _sparse():
    matrices = [load_network(spec).adjacency for spec in NETWORKS]
    return _written(
        ".npz",
        *[lambda path, one=one: save_npz(path, one, compressed=False) for one in matrices],
        *[lambda path, one=one: save_npz(path, one.tocoo(), compressed=False) for one in matrices],
    )


@cache
def _plans():
    plans = [form_clusters(spec).to_json() for spec in ("barbell:size=3", "path:n=4")]
    return [json.dumps(plan | {"checksum": None}) for plan in plans], [
        json.dumps(plan).encode() for plan in plans
    ]


def _plan(draw):
    """Plans whose checksum is switched off in most, as all others are refused for it."""
    open_ones, whole = _plans()
    if draw.random() < 0.2:
        return mutated(draw, whole)
    return json.dumps(mutated_json(draw, draw.choice(open_ones))).encode()


def _use_plan(path):
    plan = read_plan(path)
    assert sorted(device for cluster in plan.clusters for device in cluster) == list(
        range(plan.num_devices)
    )
    assert plan.labels.shape == (plan.num_devices,)
    str(plan.decision)
    plan.to_json()


@cache
def _experiment():
    return to_toml(Experiment()).encode(), json.dumps(Experiment().model_dump(mode="json"))


def _toml(draw):
    toml, as_json = _experiment()
    if draw.random() < 0.5:
        return mutated_text(draw, [toml])
    return json.dumps(mutated_json(draw, as_json)).encode()


def _use_toml(content, folder):
    """A TOML file, or the same values as JSON has them, as texts of ``--set``."""
    if not content.startswith(b"{"):
        _from_file(".toml", load_experiment)(content, folder)
        return
    values = json.loads(content)
    experiment = load_experiment(
        None, (), {key: value for key, value in values.items() if key.isidentifier()}
    )
    to_toml(experiment)


DEVICES = [
    b"device,label_0,label_1,rho,mu\n"
    b"a,1,2,0.5,0\nb,3,4,0,0.1\nc,5,6,0,0\nd,1,1,0,0\ne,2,2,0,0\nf,3,3,0,0\n",
    b"device,label_0\n" + b"".join(b"%c,%d\n" % (97 + k, k) for k in range(6)),
]
HOSTS = [
    b"device,address\n" + b"".join(b"%c,10.0.0.%d:50051\n" % (97 + k, k) for k in range(6)),
    b"device,address\n0,h:1\n1,h:2\n2,h:3\n3,\n4,h:5\n5,[::1]:6\n",
]
DEVICE = json.dumps(
    dataclasses.asdict(
        DeviceConfig("a", 0, NAMES, "ssdfl", 0, "127.0.0.1:5000", {"b": "127.0.0.1:5001", "c": ""})
    )
)


def _use_device(content, folder):
    (folder / "device.json").write_bytes(content)
    read_device(folder)


def _idx(draw):
    """Arrays of bytes; in most, the header is changed or the content is as long as it says."""
    shape = tuple(draw.randrange(6) for _ in range(draw.randrange(5)))
    header = b"\0\0\x08" + bytes([len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
    content = bytes(math.prod(shape))
    kind = draw.randrange(4)
    if kind == 0:
        return gzip.compress(mutated(draw, [header]) + content, 1)
    if kind == 1:
        return gzip.compress(header + mutated(draw, [content]), 1)
    return _perhaps_inside_gzip(draw, [header + content])


def _perhaps_inside_gzip(draw, corpus):
    """A change of the compressed file, or of what is in it."""
    if draw.random() < 0.3:
        return mutated(draw, [gzip.compress(one, 1) for one in corpus])
    return gzip.compress(mutated(draw, corpus), 1)


def _batches(kind, images=2):
    names = [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]
    pixels = bytes(3072)
    pickled = pickle.dumps({b"labels": [1] * images, b"data": pixels * images}, protocol=2)
    content = (b"\1" + pixels) * images if kind == ".bin" else pickled
    return [(name + kind, content) for name in names]


@cache
def _tars():
    contents = []
    for kind in (".bin", ""):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, content in _batches(kind, images=1):
                info = tarfile.TarInfo(name)
                info.size, info.pax_headers = len(content), {"comment": "é"}
                tar.addfile(info, io.BytesIO(content))
        contents.append(out.getvalue())
    return contents


def _tar(draw):
    """Archives with one block changed; half of them with more changes, or with a changed gzip."""
    changed = _near_headers(draw, draw.choice(_tars()))
    if draw.random() < 0.5:
        return gzip.compress(changed, 1)
    return _perhaps_inside_gzip(draw, [changed])


@cache
def _headers(content):
    """The blocks of an archive that are not all zeros."""
    blocks = range(len(content) // 512)
    return [block for block in blocks if any(content[512 * block : 512 * block + 512])]


def _near_headers(draw, content):
    """A change of one of an archive's headers, as most of it is pixels."""
    place = 512 * draw.choice(_headers(content))
    block = mutated(draw, [content[place : place + 512]])
    if draw.random() < 0.8:
        block = with_tar_checksum(block[:512].ljust(512, b"\0"))
    return content[:place] + block + content[place + 512 :]


def _use_batch(content, folder):
    name = "data_batch_1" if content[:1] == b"\x80" else "data_batch_1.bin"
    with readable(folder):
        images, labels = parse_cifar(name, content)
        assert len(images) == len(labels)


@cache
def _encoded_images():
    contents = []
    for kind in ("PNG", "JPEG", "BMP", "WEBP"):
        out = io.BytesIO()
        Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(out, kind)
        contents.append(out.getvalue())
    return contents


@cache
def _image_tables():
    cells = [[{"bytes": one, "path": None}] * 3 for one in _encoded_images()]
    tables = [pa.table({"img": column, "label": [0, 1, 0]}) for column in cells]
    options = {"compression": "NONE", "write_statistics": False}
    return _written(
        ".parquet", *[lambda p, one=one: parquet.write_table(one, p, **options) for one in tables]
    )


def _image_parquet(draw):
    if draw.random() < 0.4:
        return mutated(draw, _image_tables())
    cells = [{"bytes": mutated(draw, _encoded_images())} for _ in range(2)]
    table = pa.table({draw.choice(["img", "image"]): cells, "label": [0, 1]})
    out = io.BytesIO()
    parquet.write_table(table, out, compression="NONE")
    return out.getvalue()


def _use_image_parquet(path):
    images, labels = read_image_parquet([path])
    assert images.dtype == np.uint8
    assert len(images) == len(labels)


TABLE = pa.table(
    {
        "x": [1.5, 2.5, None, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0],
        "n": list(range(10)),
        "kind": ["a", "b"] * 5,
        "flag": [True, False, None, True, False] * 2,
        "label": [0, 1] * 5,
    }
)


@cache
def _parquets():
    plain = {"compression": "NONE", "write_statistics": False}
    kinds = (plain, {"compression": "SNAPPY"}, {"compression": "ZSTD", "use_dictionary": False})
    return _written(
        ".parquet", *[lambda p, one=one: parquet.write_table(TABLE, p, **one) for one in kinds]
    )


def _parquet(draw, columns, corpus):
    return _either(draw, lambda: mutated_parquet(draw, columns), corpus, share=0.5)


@cache
def _csvs():
    rows = [",".join(TABLE.column_names)]
    rows += [
        ",".join("" if cell is None else str(cell) for cell in row.values())
        for row in TABLE.to_pylist()
    ]
    return ["\n".join(rows).encode(), b"a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n"]


@cache
def _npzs():
    inputs, targets = np.arange(40.0).reshape(10, 4), np.arange(10) % 2
    return _written(
        ".npz",
        lambda path: np.savez(path, x=inputs, y=targets),
        lambda path: np.savez_compressed(path, x=inputs.astype(np.uint8), y=targets),
        lambda path: np.savez(
            path, train_x=inputs, train_y=targets, test_x=inputs[:2], test_y=targets[:2]
        ),
    )


def _use_table(path):
    data = read_path(path, Reading(test_share=0.3))
    assert len(data.train_inputs) == len(data.train_targets) > 0
    assert np.isfinite(np.asarray(data.train_inputs, dtype=float)).all() or path.suffix == ".npz"


@cache
def _job():
    return dataclasses.replace(tiny_job("ssdfl", optimizers="momentum"), method="ssdfl")


@cache
def _checkpoint(devices):
    """A checkpoint of all devices or of one: tensors, facts, the file, and one without checksum."""
    job = _job()
    _, state = next(run(dataclasses.replace(job, schedule=lambda t: job.schedule(0))))
    if devices is not None:
        memory = {name: rows[list(devices)] for name, rows in state.memory.items()}
        state = dataclasses.replace(state, X=state.X[list(devices)], memory=memory, real_s=1.5)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "c.safetensors"
        save_state(state, job, path, None if devices is None else np.array(devices))
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["ssdfl"])
        tensors, whole = load_file(path), path.read_bytes()
        save_file(tensors, path, metadata={"ssdfl": json.dumps(_without_checksum(facts))})
        del facts["checksum"]
        return tensors, json.dumps(facts), whole, path.read_bytes()


@cache
def _scratch():
    """A folder for what inputs are made of, in memory if possible."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _checkpoint_target(devices):
    def make(draw):
        tensors, facts, whole, old = _checkpoint(devices)
        if draw.random() < 0.2:
            return mutated(draw, [whole])
        if draw.random() < 0.3:  # no checksum, so that every change reaches what checks values
            return mutated(draw, [old])
        said, changed = json.loads(facts), tensors
        if draw.random() < 0.5:
            said = mutated_json(draw, facts)
        else:
            changed = _other_tensors(draw, tensors)
        path = _scratch() / "c.safetensors"
        write_tensors(changed, path, said)
        return path.read_bytes()

    def read(path):
        _check_state(load_state(path, _job(), None if devices is None else np.array(devices)))

    def read_all(path):
        with suppress(InputError):
            load_parameters(path)
        with suppress(InputError):
            _use_model(read_model([path], "mean"))
        read(path)

    return Target(make, _from_file(".safetensors", read_all))


def _without_checksum(facts):
    return {key: value for key, value in facts.items() if key not in ("checksum", "method")} | {
        "format": 2
    }


def _other_tensors(draw, tensors):
    """Some tensors of another type or shape, or with other numbers."""
    changed = dict(tensors)
    name = draw.choice(sorted(tensors))
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    values = [float("nan"), float("inf"), -1.0, 1e30, 0.0]
    change = draw.randrange(5)
    if change == 0:
        changed[name] = tensors[name].to(draw.choice(kinds))
    elif change == 1:
        changed[name] = torch.full_like(tensors[name].float(), draw.choice(values)).to(
            tensors[name].dtype
        )
    elif change == 2:
        changed[name] = torch.zeros(
            draw.choice([(), (0,), (1,), (6, 0), (3, 3, 3)]), dtype=tensors[name].dtype
        )
    elif change == 3:
        del changed[name]
    return changed


def _check_state(state):
    job = _job()
    assert type(state.step) is int
    assert 0 <= state.step <= job.last_step
    assert type(state.transmissions) is int
    assert state.trained.dtype == bool
    assert state.trained.shape == state.ready_s.shape == (job.network.num_devices,)
    assert state.ready_s.dtype == np.float64
    assert np.isfinite(state.ready_s).all()
    assert (state.ready_s >= 0).all()
    assert torch.isfinite(state.X).all()
    assert all(torch.isfinite(rows).all() for rows in state.memory.values())


def _use_model(saved):
    if saved.facts is not None:
        ModelFacts.from_json(saved.facts)
    assert saved.cycle >= 0


def _messages(rule):
    """A rule's message of one device, and how it travels."""
    at = moment(3)
    theta = torch.arange(40, dtype=torch.float32)[None] / 7
    found = find_rule(rule)
    compressor = getattr(found, "compressor", None)
    message = Message(theta)
    if compressor is not None:
        message, _ = found.send(at, theta, Standstill(theta), found.init(theta))
    return message, pack(message, at)


RULES = (
    "cta",
    *(
        f"choco:compressor={one}"
        for one in ("topk,fraction=0.1", "int8,block=8", "sign,block=8", "bf16")
    ),
)


@cache
def _wire():
    return [_messages(rule) for rule in RULES]


def _wire_input(draw):
    """A number that says what is read, and a message."""
    kind = draw.randrange(len(RULES) + 3)
    if kind < len(RULES):
        corpus = [_wire()[kind][1].SerializeToString()]
    elif kind == len(RULES):
        corpus = [pack_samples(np.ones((3, 4))).SerializeToString()]
    else:
        facts = Facts(facts=[_signed_fact()] * 2)
        corpus = [
            Response(id=3, facts=facts).SerializeToString(),
            Request(id=7).SerializeToString(),
        ]
    return bytes([kind]) + mutated(draw, corpus)


def _use_wire(content, folder):
    kind, data = content[0], content[1:]
    if kind < len(RULES):
        heard = unpack(Parameters.FromString(data), _wire()[kind][0], moment(3))
        assert heard.shape == (40,)
        assert torch.isfinite(heard).all()
    elif kind == len(RULES):
        assert np.isfinite(unpack_samples(Samples.FromString(data), 4)).all()
    else:
        (Request if kind % 2 else Response).FromString(data)


LIKE = Device(np.ones(2), 0.5, 0.0)
LINK = Fact(link=LinkFact(a="a", b="b", distance=0.5))
FACTS = (
    LINK,
    Fact(descriptor=Descriptor(device="b", labels=[0.5, 0.5], rho=0.5, mu=0.1, smoothness=1.0)),
)


def _signed_fact(fact=LINK):
    content = fact.SerializeToString()
    return SignedFact(fact=content, signatures=[Signature(signature=b"1", certificate=b"2")])


@cache
def _facts():
    facts = Facts(facts=[_signed_fact()])
    return _written(".binpb", lambda path: write_facts(facts, path))


def _facts_input(draw):
    """Facts with their checksum, changed as bytes, as a message, or as what devices have signed."""
    if draw.random() < 0.1:
        return mutated(draw, _facts())
    facts = Facts(facts=[_signed_fact(mutated_message(draw, draw.choice(FACTS)))])
    if draw.random() < 0.5:
        facts = mutated_message(draw, facts)
    content = facts.SerializeToString()
    return with_sha256(content if draw.random() < 0.5 else mutated(draw, [content]))


def _use_facts(path):
    """Facts of a file, and what each says."""
    for signed in read_facts(path).facts:
        fact = parsed(signed)
        device = checked_device(fact.descriptor, LIKE, NAMES)
        assert np.isfinite(device.labels).all()


def _spec_target(corpus, find):
    """Texts without a colon more than they had: ``module:function`` would import a module."""

    def make(draw):
        return mutated(draw, [text.encode() for text in corpus])

    def read(content, folder):
        text = content.decode(errors="replace")
        if all(ord(character) >= 32 for character in text):
            find(text)

    return Target(make, read)


def _experiment_records():
    return pa.table({"cycle": [1, 2], "accuracy": [0.5, 0.6], "loss": [1.0, 0.9]})


@cache
def _records():
    return _written(".parquet", lambda path: parquet.write_table(_experiment_records(), path))


TARGETS: dict[str, Target] = {
    **{
        f"network{ending}": _network_target(ending, change)
        for ending, change in (
            (".graphml", mutated_text),
            (".gml", mutated_text),
            (".csv", mutated_csv),
            (".npy", _npy),
            (".npz", _npz),
        )
    },
    "network.json": Target(_network_json, _from_file(".json", read_network)),
    "network.sparse": Target(lambda draw: _npz(draw, _sparse()), _from_file(".npz", read_network)),
    "plan": Target(_plan, _from_file(".json", _use_plan)),
    "experiment": Target(_toml, _use_toml),
    "devices": Target(
        lambda draw: mutated_csv(draw, DEVICES),
        _from_file(".csv", lambda p: read_devices(p, NAMES)),
    ),
    "hosts": Target(
        lambda draw: mutated_csv(draw, HOSTS), _from_file(".csv", lambda p: read_hosts(p, NAMES))
    ),
    "device": Target(lambda draw: json.dumps(mutated_json(draw, DEVICE)).encode(), _use_device),
    "idx": Target(_idx, _from_file(".gz", read_idx)),
    "cifar.tar": Target(_tar, _from_file(".tar.gz", read_cifar_archive)),
    "cifar.batch": Target(
        lambda draw: mutated(
            draw, [content for kind in (".bin", "") for _, content in _batches(kind)[:1]]
        ),
        _use_batch,
    ),
    "images.parquet": Target(_image_parquet, _from_file(".parquet", _use_image_parquet)),
    "table.csv": Target(lambda draw: mutated_csv(draw, _csvs()), _from_file(".csv", _use_table)),
    "table.parquet": Target(
        lambda draw: _parquet(draw, [TABLE.to_pydict()], _parquets()),
        _from_file(".parquet", _use_table),
    ),
    "table.npz": Target(lambda draw: _npz(draw, _npzs()), _from_file(".npz", _use_table)),
    "records": Target(
        lambda draw: _parquet(draw, [_experiment_records().to_pydict()], _records()),
        _from_file(".parquet", read_records),
    ),
    "checkpoint": _checkpoint_target(None),
    "checkpoint.device": _checkpoint_target((1,)),
    "facts": Target(_facts_input, _from_file(".binpb", _use_facts)),
    "wire": Target(_wire_input, _use_wire),
    "spec.network": _spec_target(SPECS, load_network),
    "spec.method": _spec_target(METHODS, find_method),
    "spec.optimizer": _spec_target(OPTIMIZERS, parse_optimizer),
    "spec.rate": _spec_target(RATES, lambda text: find_rate(text, 10)(3)),
    "spec.attack": _spec_target(ATTACKS, find_attack),
}
EXPECTED = (BadMessageError, DecodeError)
"""What readers may raise besides InputError: a message that is refused, or that is no message."""
