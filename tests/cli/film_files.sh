# Alembic, OpenVDB, USD and BGEO: read back without their libraries, and by programs that have them where these are.
. "$(dirname "$0")/common.sh"
read_file() { python3 "$source/tests/cli/film_files.py" "$@"; }
cat >drop.json <<'SCENE'
{"domain": {"size": [0.4, 0.4, 0.4], "cell_size": 0.04}, "time": {"end": 0.1, "fps": 30},
 "liquids": [{"shape": {"type": "box", "min": [0, 0, 0], "max": [0.2, 0.3, 0.4]}}],
 "output": {"skp": true}, "render": {"camera": [
   {"time": 0, "eye": [1, 1, 1], "target": [0, 0, 0]}, {"time": 1, "eye": [1, 1, 2], "target": [0, 0, 0]}]}}
SCENE
"$selkie" run drop.json --out run -q 2>error.txt || bad "run: $(cat error.txt)"

# --- Meshes: each format has the vertices and the volume of the PLY file
for format in ply abc usd vdb; do
    "$selkie" mesh run --to $format --resolution 1 -q 2>error.txt || bad "mesh --to $format: $(cat error.txt)"
done
wanted=$(read_file ply run/surfaces/surface_0003.ply)
[ "$(read_file usd run/surfaces/surface_0003.usda)" = "$wanted" ] && good "USD: $wanted" || bad "USD: $(read_file usd run/surfaces/surface_0003.usda), not $wanted"
[ "$(read_file abc run/surfaces/surface.abc)" = "4 frames, step 0.033333, $wanted" ] && good "Alembic: 4 frames" ||
    bad "Alembic: $(read_file abc run/surfaces/surface.abc), not $wanted"
[ "$(grep -c 'prepend references' run/surfaces/surface.usda)" -eq 4 ] && good "a stage of 4 frames" || bad "USD stage"
if command -v vdb_print >/dev/null; then
    vdb_print -l run/surfaces/surface_0003.vdb >vdb.txt 2>&1 && grep -q 'class: level set' vdb.txt && grep -q 'Name: vel' vdb.txt &&
        grep -q 'voxel .*0.0[34]' vdb.txt && good "OpenVDB reads the grids surface and vel" || bad "VDB: $(cat vdb.txt)"
fi

"$selkie" mesh run --attributes --frames 3 --out more -q 2>error.txt && grep -aq 'property float vorticity_z' more/surface_0003.ply &&
    [ "$(read_file ply more/surface_0003.ply | cut -d' ' -f3)" != 0.000000 ] && good "vorticity at the vertices" || bad "attributes: $(cat error.txt)"

# --- Further values: vectors and numbers in Alembic, grids in OpenVDB
"$selkie" run drop.json --set 'materials=[{"name":"water"},{"name":"oil","density":900}]' --set liquids[0].material=oil \
    --out oil -q 2>error.txt || bad "run: $(cat error.txt)"
for format in abc vdb; do
    "$selkie" mesh oil --to $format --resolution 1 --attributes -q 2>error.txt || bad "mesh --to $format: $(cat error.txt)"
done
[ "$(read_file values oil/surfaces/surface.abc)" = 'material:1 vorticity:3' ] && good "values in Alembic meshes" ||
    bad "values: $(read_file values oil/surfaces/surface.abc)"
[ "$(read_file grids oil/surfaces/surface_0003.vdb)" = 'surface:float vel:vec3s material:float' ] && good "grids of values" ||
    bad "grids: $(read_file grids oil/surfaces/surface_0003.vdb)"
command -v vdb_print >/dev/null && { vdb_print -l oil/surfaces/surface_0003.vdb 2>&1 | grep -q 'Name: material' &&
    good "OpenVDB reads them" || bad "VDB: $(vdb_print -l oil/surfaces/surface_0003.vdb 2>&1)"; }
"$selkie" convert oil --to abc -q && [ "$(read_file values oil/frames/particles.abc)" = 'material:1' ] &&
    good "values of Alembic points" || bad "points: $(read_file values oil/frames/particles.abc)"

# --- Particles
"$selkie" convert run --to abc -q && "$selkie" convert run --to bgeo -q && "$selkie" convert run --to vtp -q || bad "convert"
read_file points run/frames/particles.abc | grep -q '^4 frames, [0-9]* points, .* moves 1$' && good "Alembic points" ||
    bad "points: $(read_file points run/frames/particles.abc)"
read_file bgeo run/frames/particles_0002.bgeo | grep -q 'points, v pscale id, first' && good "BGEO" ||
    bad "BGEO: $(read_file bgeo run/frames/particles_0002.bgeo)"

# --- VTK reads the same points and velocities where a Python has it
for python in python3 /usr/bin/python3; do "$python" -c 'import vtk' 2>/dev/null && break || python=; done
if [ -n "$python" ]; then
    "$python" - run/frames/particles_0002.vtp >vtk.txt 2>&1 <<'SCRIPT'
import sys, vtk
reader = vtk.vtkXMLPolyDataReader()
reader.SetFileName(sys.argv[1])
reader.Update()
cloud = reader.GetOutput()
data = cloud.GetPointData()
names = [data.GetArrayName(n) for n in range(data.GetNumberOfArrays())]
print(cloud.GetNumberOfPoints(), cloud.GetNumberOfVerts(), 'velocity' in names, '%.3f' % cloud.GetBounds()[1])
SCRIPT
    points=$(read_file bgeo run/frames/particles_0002.bgeo | sed 's/ points.*//; s/.* //')
    grep -q "^$points [1-9][0-9]* True 0\.[1-4]" vtk.txt && good "VTK reads $points points" || bad "VTK: $(cat vtk.txt), not $points points"
fi

# --- A damaged frame does not stop the others
printf x | dd of=run/frames/particles_0001.skp bs=1 seek=200 conv=notrunc status=none
rm -f run/frames/*.ply
"$selkie" convert run --to ply -q 2>error.txt && bad "a damaged frame passes"
[ "$(ls run/frames/*.ply | wc -l)" -eq 3 ] && grep -q '1 of 4 files' error.txt && good "the other frames are converted" || bad "$(cat error.txt)"
"$selkie" mesh run --frames 90 -q 2>error.txt && bad "no frame 90" || grep -q 'no such frame' error.txt && good "frames that are not there" || bad "$(cat error.txt)"

# --- A full disk stops the run with a message, although another thread writes the frames
mkdir full
if mount -t tmpfs -o size=1m tmpfs full 2>/dev/null; then
    "$selkie" run drop.json --set domain.cell_size=0.02 --out full/run -q 2>error.txt && bad "a full disk passes" ||
        { grep -q 'the disk is full' error.txt && [ -z "$(ls full/run/frames/*.part 2>/dev/null)" ] && good "a full disk is named"; } ||
        bad "full disk: $(cat error.txt)"
    umount full
fi

# --- Pictures: cut away, blurred, and a camera whose times do not increase
"$selkie" render run --frames 3 --width 160 --cut 'z>0.2' --shutter 0.5 --no-film -q 2>error.txt &&
    [ "$(stat -c %s run/pictures/frame_0003.png)" -gt 2000 ] && good "cut away and blurred" || bad "render: $(cat error.txt)"
"$selkie" render run --cut 'q>1' 2>&1 | grep -q 'not a plane' && good "a bad plane is named" || bad "plane"
sed 's/"time": 1, "eye"/"time": 0, "eye"/' drop.json >camera.json
"$selkie" check camera.json 2>&1 | grep -q 'camera\[1\].time' && good "camera times must increase" || bad "camera: $("$selkie" check camera.json 2>&1)"

# --- Blender imports the meshes and renders one
if command -v blender >/dev/null; then
    cat >blender.py <<'SCRIPT'
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
for n in range(1, 4):
    bpy.ops.import_mesh.ply(filepath='surface_%04d.ply' % n)
mesh = bpy.context.object.data
scene = bpy.context.scene
camera = bpy.data.objects.new('camera', bpy.data.cameras.new('camera'))
camera.location, camera.rotation_euler = (0.2, 0.2, 2.0), (0, 0, 0)
scene.collection.objects.link(camera)
scene.collection.objects.link(bpy.data.objects.new('sun', bpy.data.lights.new('sun', 'SUN')))
scene.camera, scene.render.engine, scene.cycles.samples = camera, 'CYCLES', 2
scene.cycles.use_denoising = False
scene.render.resolution_x = scene.render.resolution_y = 32
scene.render.filepath = 'blender.png'
bpy.ops.render.render(write_still=True)
print('BLENDER', len(bpy.data.meshes), len(mesh.vertices), len(mesh.polygons))
if hasattr(bpy.ops.wm, 'alembic_import') and bpy.app.build_options.alembic:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.alembic_import(filepath='surface.abc')
    scene = bpy.context.scene
    scene.frame_set(scene.frame_end)
    things = [o for o in bpy.data.objects if o.type == 'MESH']
    graph = bpy.context.evaluated_depsgraph_get()
    print('ALEMBIC', [len(o.evaluated_get(graph).data.vertices) for o in things], scene.frame_end - scene.frame_start + 1)
if bpy.app.build_options.openvdb:
    import os
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.object.volume_import(filepath='surface_0003.vdb', directory=os.getcwd(), files=[{'name': 'surface_0003.vdb'}])
    volume = bpy.context.object.data
    volume.grids.load()
    print('VDB', [grid.name for grid in volume.grids])
SCRIPT
    (cd run/surfaces && blender -b -noaudio -P ../../blender.py >../../blender.txt 2>&1)
    grep -q "^BLENDER 3 ${wanted%% *} " blender.txt && [ -s run/surfaces/blender.png ] && good "Blender imports and renders" || bad "Blender: $(tail -n 5 blender.txt)"
    grep '^ALEMBIC' blender.txt >alembic.txt && { grep -q "^ALEMBIC \[${wanted%% *}\]" alembic.txt &&
        good "Blender opens the Alembic file" || bad "Alembic in Blender: $(cat alembic.txt), not ${wanted%% *}"; }
    grep '^VDB' blender.txt >volume.txt && { grep -q "^VDB \['surface', 'vel'\]" volume.txt &&
        good "Blender opens the OpenVDB file" || bad "OpenVDB in Blender: $(cat volume.txt)"; }
fi
finish
