import { checkSchemaObject } from '@millrace/engine/value/documents';
import type { JsonObject } from '@bufbuild/protobuf';
import { Database, type CollectionSchema } from '@millrace/contract/db';
import type { SchemaInfo, SetSchemaOptions, SetSchemaResult } from '@millrace/engine/write/schemas';
import { CallRefusal } from './failures.js';
import { dateOf } from './records.js';
import type { CallOptions, Session } from './session.js';

const { method: rpc } = Database;

// The server reads every record of the collection first.
const setTimeoutMs = 30 * 60_000;

/** The JSON Schemas of the collections on the server. */
export class RemoteSchemas {
  constructor(private readonly session: Session) {}

  async list(options: CallOptions = {}): Promise<SchemaInfo[]> {
    const { schemas } = await this.session.call(rpc.listSchemas, {}, options);
    return schemas.map(infoOf);
  }

  async get(collection: string, options: CallOptions = {}): Promise<SchemaInfo | undefined> {
    try {
      const { schema } = await this.session.call(rpc.getSchema, { collection }, options);
      return schema && infoOf(schema);
    } catch (error) {
      if (error instanceof CallRefusal && error.code === 'SCHEMA_NOT_FOUND') return undefined;
      throw error;
    }
  }

  async set(
    collection: string,
    schema: object,
    options: SetSchemaOptions & CallOptions = {},
  ): Promise<SetSchemaResult> {
    checkSchemaObject(schema);
    const { validate = 'strict', force = false, timeoutMs = setTimeoutMs, signal } = options;
    const request = { collection, schema: schema as JsonObject, validate, force };
    const reply = await this.session.callOnce(rpc.setSchema, request, { timeoutMs, signal });
    return {
      applied: reply.applied,
      checked: Number(reply.checked),
      violating: Number(reply.violating),
      violations: reply.violations.map(({ id, key, path, message }) => ({
        id,
        key,
        path,
        message,
      })),
      seq: Number(reply.seq),
    };
  }

  /** Returns the commit that removed it. Refuses SCHEMA_NOT_FOUND. */
  async remove(collection: string, options: CallOptions = {}): Promise<number> {
    const { seq } = await this.session.callOnce(rpc.removeSchema, { collection }, options);
    return Number(seq);
  }
}

function infoOf(message: CollectionSchema): SchemaInfo {
  return {
    collection: message.collection,
    schema: message.schema ?? {},
    validate: message.validate === 'warn' ? 'warn' : 'strict',
    updatedAt: dateOf(message.updatedAt),
    violationCount: Number(message.violationCount),
  };
}
