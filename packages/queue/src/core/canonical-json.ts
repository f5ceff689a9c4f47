/**
 * Canonical JSON (RFC 8785): no whitespace, object keys sorted by UTF-16 code units, numbers and
 * strings as JavaScript writes them. Undefined members are omitted.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) return canonicalObject(value);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`JSON has no ${value}`);
  }
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`JSON has no ${typeof value}`);
  return text;
}

function canonicalObject(value: object): string {
  const members: string[] = [];
  const record = value as Record<string, unknown>;
  // JavaScript's default string order is the one that the RFC requires.
  for (const key of Object.keys(record).toSorted()) {
    if (record[key] === undefined) continue;
    members.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`);
  }
  return `{${members.join(',')}}`;
}
