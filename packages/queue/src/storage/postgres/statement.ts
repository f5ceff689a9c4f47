/** One SQL statement. The database plans it once for each connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Rows are lists: the driver takes long over objects with many columns. */
  readonly rowMode?: 'array';
}

/** A statement whose rows come as lists. */
export function listingStatement(name: string, text: string): Statement {
  return { ...statement(name, text), rowMode: 'array' };
}

export function statement(name: string, text: string): Statement {
  return { name: `millrace_${name}`, text };
}

/** A statement that passes over locked rows, and the same that waits for them. */
export interface SkippingStatement {
  readonly skipping: Statement;
  readonly waiting: Statement;
}

/** `text` says `FOR UPDATE SKIP LOCKED` where rows are taken. */
export function skippingStatement(name: string, text: string): SkippingStatement {
  return {
    skipping: statement(name, text),
    waiting: statement(`${name}_waiting`, text.replaceAll(' SKIP LOCKED', '')),
  };
}
