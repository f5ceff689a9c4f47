/**
 * True when the whole name fits the glob. Only `*` is special: it stands for any run of
 * characters, dots included, also for none. Takes time linear in the name for each star.
 */
export function globMatches(glob: string, name: string): boolean {
  const star = glob.indexOf('*');
  if (star === -1) return glob === name;
  if (glob.length === 1) return true;
  const parts = glob.split('*');
  const head = parts[0]!;
  const tail = parts[parts.length - 1]!;
  if (name.length < head.length + tail.length) return false;
  if (!name.startsWith(head) || !name.endsWith(tail)) return false;
  let at = head.length;
  const end = name.length - tail.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i]!;
    const found = name.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
