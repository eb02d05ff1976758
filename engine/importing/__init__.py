"""Import of workflows that other programs have written.

    from engine.importing.reader import import_file

    result = import_file("dev-cycle.yaml")
    save(result.workflow, "dev-cycle.loop.json")
    for entry in result.entries: print(entry)

Each format is an `ImporterSpec` in `importers`, with a converter in a module of its own. An import executes nothing,
and its report has a line for each member of the file.
"""
