/**
 * Reads the operations of an OpenAPI document in YAML: `GET /v1/queues/{}/tasks`. Parameters have
 * no names here, because their names are no part of an interface.
 */
export function operationsIn(document: string): Set<string> {
  const operations = new Set<string>();
  let path: string | undefined;
  let isInPaths = false;
  for (const line of document.split('\n')) {
    if (/^\S/.test(line)) isInPaths = line.startsWith('paths:');
    if (!isInPaths) continue;
    const pathFound = /^ {2}['"]?(\/[^'"\s]*?)['"]?:\s*$/.exec(line);
    if (pathFound) path = pathFound[1];
    const method = /^ {4}(get|put|post|patch|delete):/.exec(line);
    if (path !== undefined && method) {
      operations.add(`${method[1]!.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`);
    }
  }
  return operations;
}
