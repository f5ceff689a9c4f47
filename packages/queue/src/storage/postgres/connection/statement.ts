/** One SQL statement, prepared once per connection under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Rows are arrays: the driver is slow with objects of many columns. */
  readonly rowMode?: 'array';
  /** How long the driver waits for the result, if not as usual. */
  readonly timeoutMs?: number;
}

/** A statement whose rows are arrays. */
export function listingStatement(name: string, text: string): Statement {
  return { ...statement(name, text), rowMode: 'array' };
}

export function statement(name: string, text: string): Statement {
  return { name: `millrace_${name}`, text };
}

/** A statement that skips locked rows, and the same that waits for them. */
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
