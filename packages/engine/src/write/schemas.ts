import { decodeCommit, type RecordImage } from '../format/record.js';
import type { Core } from '../core/core.js';
import { commitDeclarations, keyOf, putDeclaration, removeDeclaration } from './catalog-changes.js';
import {
  checkCollectionName,
  type JsonObject,
  checkSchemaObject,
  refuse,
} from '../value/documents.js';
import {
  compileSchema,
  maxSchemaBytes,
  type CheckDocument,
  type CollectionSchema,
  type ValidateMode,
} from '../core/json-schema.js';
import type { Queries } from './reads.js';

export interface SetSchemaOptions {
  /** `strict` (default) refuses documents that do not match; `warn` logs and counts them. */
  validate?: ValidateMode | undefined;
  /** Sets the schema although existing records do not match it. */
  force?: boolean | undefined;
}

/** A record that does not match a schema. */
export interface RecordViolation {
  id: string;
  key: string;
  /** Dotted path. Empty: the document as a whole. */
  path: string;
  message: string;
}

export interface SetSchemaResult {
  /** False: existing records do not match, and nothing was changed. */
  applied: boolean;
  /** Number of records checked. */
  checked: number;
  /** Number of records that do not match. */
  violating: number;
  /** The first 20 of them. */
  violations: RecordViolation[];
  /** The commit that set the schema; 0 when nothing was changed. */
  seq: number;
}

export interface SchemaInfo {
  collection: string;
  schema: JsonObject;
  validate: ValidateMode;
  updatedAt: Date;
  /** Writes that did not match since this process loaded the schema. */
  violationCount: number;
}

const maxViolations = 20;
const commitsPerStep = 500;

/** The JSON Schemas of the collections, which validate every write. */
export class Schemas {
  constructor(
    private readonly core: Core,
    private readonly queries: Queries,
  ) {}

  async list(): Promise<SchemaInfo[]> {
    return this.core.catalog
      .all()
      .flatMap(({ name, schema }) => (schema ? [infoOf(name, schema)] : []))
      .sort((a, b) => (a.collection < b.collection ? -1 : 1));
  }

  async get(name: string): Promise<SchemaInfo | undefined> {
    checkCollectionName(name);
    const schema = this.core.catalog.find(name)?.schema;
    return schema && infoOf(name, schema);
  }

  async set(
    name: string,
    schema: unknown,
    { validate = 'strict', force = false }: SetSchemaOptions = {},
  ): Promise<SetSchemaResult> {
    checkCollectionName(name);
    if (validate !== 'strict' && validate !== 'warn') {
      throw refuse('BAD_REQUEST', 'validate must be strict or warn.');
    }
    const { text, check } = compiled(schema);
    const scan = new Scan(check);
    let seen = await this.#checkRecords(name, scan);
    seen = await this.#catchUp(name, scan, seen);
    if (scan.violating > 0 && !force) return scan.result(0);
    const seq = await this.core.writer
      .submit(() => {
        const since = new Scan(check);
        this.#checkCommits(name, since, seen, this.core.state.seq);
        if (since.violating > 0 && !force) throw new NotApplied(since);
        const declaration = { collection: name, schema: text, validate };
        return commitDeclarations(this.core, (commit) => {
          putDeclaration(this.core, commit, keyOf.schema(name), declaration);
          removeDeclaration(this.core, commit, keyOf.dropped(name));
        });
      })
      .catch((error: unknown) => {
        if (!(error instanceof NotApplied)) throw error;
        scan.add(error.scan);
        return 0;
      });
    return scan.result(seq);
  }

  /** Returns the commit that removed it. Refuses SCHEMA_NOT_FOUND. */
  async remove(name: string): Promise<number> {
    checkCollectionName(name);
    return this.core.writer.submit(() =>
      commitDeclarations(this.core, (commit) => {
        if (!removeDeclaration(this.core, commit, keyOf.schema(name))) throw schemaNotFound(name);
      }),
    );
  }

  /** Returns the commit that was read. */
  async #checkRecords(name: string, scan: Scan): Promise<number> {
    let seen = 0;
    const slice = this.core.newSlice();
    for await (const { records, readSeq } of this.queries.find(name, {})) {
      for (const { image } of records) {
        scan.check(image);
        if (slice.due()) await slice.pause();
      }
      seen = readSeq;
    }
    return seen;
  }

  /** Checks the commits since then, so that little is left for the writer. */
  async #catchUp(name: string, scan: Scan, from: number): Promise<number> {
    let seen = from;
    while (this.core.durable.seq > seen) {
      const to = Math.min(seen + commitsPerStep, this.core.durable.seq);
      this.#checkCommits(name, scan, seen, to);
      seen = to;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return seen;
  }

  #checkCommits(name: string, scan: Scan, from: number, to: number): void {
    const { core } = this;
    const collection = core.catalog.find(name);
    if (!collection) return;
    for (let seq = from + 1; seq <= to; seq++) {
      const row = core.writer.pendingCommit(seq) ?? core.commitRow(seq);
      if (!row) throw refuse('NOT_READY', 'The change log was trimmed meanwhile. Try again.');
      for (const { collection: id, after } of decodeCommit(seq, row, core.codec).changes) {
        if (after && id === collection.id) scan.check(after);
      }
    }
  }
}

/** Thrown inside the job: records written during the check do not match. */
class NotApplied extends Error {
  constructor(readonly scan: Scan) {
    super('Records do not match the schema');
  }
}

/** Counts records that do not match and keeps the first of them. */
class Scan {
  checked = 0;
  violating = 0;
  readonly violations: RecordViolation[] = [];

  constructor(private readonly checkDocument: CheckDocument) {}

  check({ id, key, data }: RecordImage): void {
    this.checked++;
    const issue = this.checkDocument(data);
    if (!issue) return;
    this.violating++;
    if (this.violations.length >= maxViolations) return;
    this.violations.push({ id, key, path: issue.path.join('.'), message: issue.message });
  }

  add({ checked, violating, violations }: Scan): void {
    this.checked += checked;
    this.violating += violating;
    this.violations.push(...violations.slice(0, maxViolations - this.violations.length));
  }

  result(seq: number): SetSchemaResult {
    const { checked, violating, violations } = this;
    return { applied: seq > 0, checked, violating, violations, seq };
  }
}

function compiled(schema: unknown): { text: string; check: CheckDocument } {
  checkSchemaObject(schema);
  const text = JSON.stringify(schema);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxSchemaBytes) {
    throw refuse(
      'BAD_SCHEMA',
      `The schema cannot be used: it has ${bytes} bytes, more than ${maxSchemaBytes}.`,
    );
  }
  return { text, check: compileSchema(JSON.parse(text) as JsonObject) };
}

function infoOf(collection: string, schema: CollectionSchema): SchemaInfo {
  const { text, validate, updatedAt, violationCount } = schema;
  return {
    collection,
    schema: JSON.parse(text) as JsonObject,
    validate,
    updatedAt: new Date(updatedAt),
    violationCount,
  };
}

export function schemaNotFound(collection: string) {
  return refuse('SCHEMA_NOT_FOUND', `"${collection}" has no schema.`, { collection });
}
