"""Import of workflows that other programs have written.

    from engine.importing.reader import import_file

    result = import_file("dev-cycle.yaml")
    save(result.workflow, "dev-cycle.loop.json")
    for entry in result.entries: print(entry)

Each format is one `ImporterSpec` in a folder of its own, listed in `registry`. An import executes nothing, and its
report has a line for each member of the file.
"""
