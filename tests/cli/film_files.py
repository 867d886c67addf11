"""Reads what `selkie mesh` and `selkie convert` write for other programs, without their libraries.

    film_files.py abc FILE.abc          one line: frames, time step, vertices and volume of the last frame
    film_files.py points FILE.abc       one line: frames, points, the first point and its velocity
    film_files.py values FILE.abc       one line: further values of the last frame, each with its numbers a vertex
    film_files.py grids FILE.vdb        one line: names and types of the grids
    film_files.py usd FILE.usda         one line: vertices and volume
    film_files.py ply FILE.ply          one line: vertices and volume
    film_files.py bgeo FILE.bgeo        one line: points, names of the attributes, the first point
"""
import re
import struct
import sys


def volume(points, faces):
    """Of a closed mesh whose faces are counter-clockwise from outside."""
    total = 0.0
    for a, b, c in faces:
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = points[a], points[b], points[c]
        total += ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    return total / 6.0


def triples(numbers):
    return list(zip(numbers[0::3], numbers[1::3], numbers[2::3]))


class Ogawa:
    """The container; the archive's layout follows AbcCoreOgawa/ReadUtil.cpp of Alembic."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            self.bytes = file.read()
        assert self.bytes[:5] == b'Ogawa' and self.bytes[5] == 0xff, 'not a complete Ogawa file'
        self.root = self.group(struct.unpack_from('<Q', self.bytes, 8)[0])

    def group(self, place):
        if place == 0:
            return []
        count = struct.unpack_from('<Q', self.bytes, place)[0]
        return list(struct.unpack_from('<%dQ' % count, self.bytes, place + 8))

    def data(self, child):
        assert child >> 63, 'data expected'
        place = child & ~(1 << 63)
        if place == 0:
            return b''
        size = struct.unpack_from('<Q', self.bytes, place)[0]
        assert place + 8 + size <= len(self.bytes)
        return self.bytes[place + 8:place + 8 + size]


def object_headers(data):
    at, end, headers = 0, len(data) - 32, []
    while at < end:
        size = struct.unpack_from('<I', data, at)[0]
        name = data[at + 4:at + 4 + size].decode()
        at += 4 + size
        assert data[at] == 0xff
        size = struct.unpack_from('<I', data, at + 1)[0]
        headers.append((name, data[at + 5:at + 5 + size].decode()))
        at += 5 + size
    assert at == end, 'headers of objects'
    return headers


def property_headers(data):
    at, headers = 0, []
    while at < len(data):
        info = struct.unpack_from('<I', data, at)[0]
        at += 4
        size = 1 << (info >> 2 & 3)
        number = {1: '<B', 2: '<H', 4: '<I'}[size]
        kind, samples = info & 3, 0
        if kind:
            samples = struct.unpack_from(number, data, at)[0]
            at += size
            if info & 0x200:
                at += 2 * size
            if info & 0x100:
                assert struct.unpack_from(number, data, at)[0] == 1, 'time sampling'
                at += size
        length = struct.unpack_from(number, data, at)[0]
        name = data[at + size:at + size + length].decode()
        at += size + length
        index, text = info >> 20 & 0xff, ''
        if index == 0xff:
            length = struct.unpack_from(number, data, at)[0]
            text = data[at + size:at + size + length].decode()
            at += size + length
        headers.append((name, kind, info >> 4 & 15, info >> 12 & 0xff, samples, text))
    assert at == len(data), 'headers of properties'
    return headers


FORMATS = {0: 'B', 6: 'i', 7: 'Q', 10: 'f', 11: 'd'}


def compound(ogawa, children):
    headers = property_headers(ogawa.data(children[-1])) if children else []
    assert len(headers) == max(len(children) - 1, 0)
    return {h[0]: (h, ogawa.group(child)) for h, child in zip(headers, children)}


def sample(ogawa, entry, index):
    header, children = entry
    name, kind, pod, extent, samples, _ = header
    assert len(children) == samples * (2 if kind == 2 else 1), name
    data = ogawa.data(children[index * (2 if kind == 2 else 1)])[16:]
    letter = FORMATS[pod]
    return struct.unpack('<%d%s' % (len(data) // struct.calcsize(letter), letter), data)


def shape_of(ogawa, schema):
    assert struct.unpack('<i', ogawa.data(ogawa.root[0]))[0] == 0
    assert struct.unpack('<i', ogawa.data(ogawa.root[1]))[0] >= 9999
    top = ogawa.group(ogawa.root[2])
    (name, text), = object_headers(ogawa.data(top[-1]))
    assert name == 'liquid' and 'schema=AbcGeom_Xform_v3' in text
    liquid = ogawa.group(top[1])
    (_, text), = object_headers(ogawa.data(liquid[-1]))
    assert not schema or 'schema=' + schema in text
    shape = ogawa.group(liquid[1])
    assert object_headers(ogawa.data(shape[-1])) == []
    return compound(ogawa, compound(ogawa, ogawa.group(shape[0]))['.geom'][1])


def times_of(ogawa):
    data = ogawa.data(ogawa.root[4])
    at = 4 + 8 + 4 + 8
    most, step, stored = struct.unpack_from('<IdI', data, at)
    assert len(data) == at + 16 + 8 * stored
    return most, step


def read_abc(path):
    ogawa = Ogawa(path)
    shape = shape_of(ogawa, 'AbcGeom_PolyMesh_v1')
    count, step = times_of(ogawa)
    assert shape['P'][0][4] == count
    points = triples(sample(ogawa, shape['P'], count - 1))
    faces = triples(sample(ogawa, shape['.faceIndices'], count - 1))
    assert set(sample(ogawa, shape['.faceCounts'], count - 1)) == {3}
    assert len(sample(ogawa, shape['.velocities'], count - 1)) == len(sample(ogawa, shape['N'], 0)) or count > 1
    box = sample(ogawa, shape['.selfBnds'], count - 1)
    assert all(abs(min(p[k] for p in points) - box[k]) < 1e-6 for k in range(3))
    # Alembic's faces are clockwise.
    return '%d frames, step %.6f, %d vertices, %.6f m3' % (count, step, len(points), -volume(points, faces))


def read_points(path):
    ogawa = Ogawa(path)
    shape = shape_of(ogawa, 'AbcGeom_Points_v1')
    count, _ = times_of(ogawa)
    points = triples(sample(ogawa, shape['P'], 0))
    assert len(sample(ogawa, shape['.pointIds'], 0)) == len(points)
    speed = triples(sample(ogawa, shape['.velocities'], count - 1))[0]
    return '%d frames, %d points, first %.6f %.6f %.6f, moves %d' % ((count, len(points)) + points[0] +
                                                                     (any(speed),))


def read_values(path):
    ogawa = Ogawa(path)
    count, _ = times_of(ogawa)
    shape = shape_of(ogawa, None)
    points = len(sample(ogawa, shape['P'], count - 1)) // 3
    values = compound(ogawa, shape['.arbGeomParams'][1])
    for entry in values.values():
        assert entry[0][4] == count and 'isGeomParam=true' in entry[0][5]
    return ' '.join('%s:%g' % (name, len(sample(ogawa, entry, count - 1)) / points) for name, entry in values.items())


def read_grids(path):
    data = open(path, 'rb').read()
    at = 8 + 12 + 1 + 36 + 4

    def text():
        nonlocal at
        size = struct.unpack_from('<I', data, at)[0]
        at += 4 + size
        return data[at - size:at].decode()
    for _ in range(6):  # metadata of the file: names, types and values of creator and time
        size = struct.unpack_from('<I', data, at)[0]
        at += 4 + size
    count, grids = struct.unpack_from('<I', data, at)[0], []
    at += 4
    for _ in range(count):
        grids.append(text() + ':' + text().split('_')[1])
        text()
        at = struct.unpack_from('<3q', data, at)[2]
    assert at == len(data), 'grids'
    return ' '.join(grids)


def array(text, name):
    body = re.search(re.escape(name) + r' = \[([^\]]*)\]', text).group(1)
    return [float(x) for x in re.findall(r'-?[0-9.]+(?:e[-+]?[0-9]+)?', body)]


def read_usd(path):
    text = open(path).read()
    assert text.startswith('#usda 1.0')
    points = triples(array(text, 'point3f[] points'))
    faces = triples([int(x) for x in array(text, 'int[] faceVertexIndices')])
    assert len(array(text, 'int[] faceVertexCounts')) == len(faces)
    assert len(array(text, 'vector3f[] velocities')) == 3 * len(points)
    return '%d vertices, %.6f m3' % (len(points), volume(points, faces))


def read_ply(path):
    data = open(path, 'rb').read()
    head, body = data.split(b'end_header\n', 1)
    count = int(re.search(rb'element vertex (\d+)', head).group(1))
    faces = int(re.search(rb'element face (\d+)', head).group(1))
    columns = len(re.findall(rb'property float', head))
    size = 4 * columns
    points = [struct.unpack_from('<3f', body, size * i) for i in range(count)]
    corners = [struct.unpack_from('<3i', body, size * count + 13 * i + 1) for i in range(faces)]
    return '%d vertices, %.6f m3' % (count, volume(points, corners))


def read_bgeo(path):
    data = open(path, 'rb').read()
    assert data[:5] == b'BgeoV'
    version, count, _, _, _, attributes = struct.unpack_from('>6i', data, 5)
    assert version == 5
    at, names, words = 41, [], 4
    for _ in range(attributes):
        length = struct.unpack_from('>H', data, at)[0]
        names.append(data[at + 2:at + 2 + length].decode())
        size, _ = struct.unpack_from('>Hi', data, at + 2 + length)
        at += 2 + length + 6 + 4 * size
        words += size
    assert len(data) == at + 4 * words * count + 2 and data[-2:] == b'\0\xff'
    return '%d points, %s, first %.6f %.6f %.6f' % ((count, ' '.join(names)) + struct.unpack_from('>3f', data, at))


if __name__ == '__main__':
    print({'abc': read_abc, 'points': read_points, 'values': read_values, 'grids': read_grids, 'usd': read_usd, 'ply': read_ply,
           'bgeo': read_bgeo}[sys.argv[1]](sys.argv[2]))
