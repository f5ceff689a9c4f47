/**
 * A position in the stream: after a commit of the change log, or after one of its changes. `mark`
 * is a hash of the history up to there, so that ids of another database are rejected.
 */
export interface Position {
  seq: number;
  /** Which change of the commit; undefined: all of them. */
  index?: number | undefined;
  mark: number;
}

const pattern = /^(\d{1,15})(?:\.(\d{1,9}))?-([0-9a-f]{8})$/;

/** `18245-3f9a01c2`, or `18245.3-3f9a01c2` where more changes of the same commit follow. */
export function idOf({ seq, index, mark }: Position): string {
  const which = index === undefined ? '' : `.${index}`;
  return `${seq}${which}-${mark.toString(16).padStart(8, '0')}`;
}

export function positionOf(id: string): Position | undefined {
  const [, seq, index, mark] = pattern.exec(id) ?? [];
  if (seq === undefined || mark === undefined) return undefined;
  const position = { seq: Number(seq), mark: Number.parseInt(mark, 16) };
  return index === undefined ? position : { ...position, index: Number(index) };
}
