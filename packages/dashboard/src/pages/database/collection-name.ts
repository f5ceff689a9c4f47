/** The rule of the server. */
const pattern = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** Why a new collection cannot have this name; undefined when it can. */
export function collectionNameError(name: string, existing: readonly string[]): string | undefined {
  if (name === '') return 'A name is required.';
  if (!pattern.test(name)) {
    return 'A name has 1 to 64 letters, digits, ".", "_" and "-", and starts with a letter.';
  }
  return existing.includes(name) ? `The collection ${name} exists already.` : undefined;
}
