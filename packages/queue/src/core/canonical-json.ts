/**
 * One text for each value, by RFC 8785: no space, the keys of objects by their UTF-16 code units,
 * numbers and strings as JavaScript writes them. Members that are undefined are left out.
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
  // The default order of strings is the one the RFC asks for.
  for (const key of Object.keys(record).toSorted()) {
    if (record[key] === undefined) continue;
    members.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`);
  }
  return `{${members.join(',')}}`;
}
