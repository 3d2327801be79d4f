"""What a tool sees of a sandbox, and its clients.

```python
connection = channel("localhost:7003")
boxes = SandboxBoxes(connection)
box = await boxes.open({"test_a.py": source}, key="", lease_s=60.0)
result = await box.run_python("print(6 * 7)")
async for event in box.exec_stream("pytest -q | tee report", timeout_s=60.0, cpu_s=30.0):
    if isinstance(event, OutputPiece):
        print(event.content.decode(), end="")
    else:
        print(event.ending, event.exit_code, event.used)
last_line = await box.read_file("report", offset=-80)
names = [entry.name for entry in await box.list_directory()]
prepared = await boxes.snapshot(box, lease_s=600.0)
group = await boxes.open_snapshot(prepared, 16, lease_s=60.0)
await boxes.destroy([box, *group])
```
"""
