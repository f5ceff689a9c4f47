import { create } from '@bufbuild/protobuf';
import {
  CollectionSchemaSchema,
  GetSchemaResponseSchema,
  ListSchemasResponseSchema,
  RemoveSchemaResponseSchema,
  SetSchemaResponseSchema,
} from '@millrace/contract/db';
import { schemaNotFound, type SchemaInfo } from '@millrace/engine/write/schemas';
import type { UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import { badField, timestamp } from './values.js';

type SchemaMethods = Pick<UnaryMethods, 'SetSchema' | 'GetSchema' | 'RemoveSchema' | 'ListSchemas'>;

export function schemaMethods(parts: ServiceParts): SchemaMethods {
  const { replication, log } = parts;
  return {
    SetSchema: async (request, context) => {
      replication.checkWritable();
      const { collection, schema, force } = request;
      if (schema === undefined) throw badField('schema', 'is missing');
      const validate = request.validate || 'strict';
      if (validate !== 'strict' && validate !== 'warn') {
        throw badField('validate', 'must be strict or warn');
      }
      const result = await parts.database.schemas.set(collection, schema, { validate, force });
      const { applied, checked, violating, violations, seq } = result;
      if (applied) {
        log.info(
          { collection, validate, violating, principal: context.principal.id, seq },
          'schema set',
        );
        await replication.confirmed(seq, context);
      }
      return create(SetSchemaResponseSchema, {
        applied,
        checked: BigInt(checked),
        violating: BigInt(violating),
        violations,
        seq: BigInt(seq),
      });
    },
    GetSchema: async ({ collection }) => {
      const schema = await parts.database.schemas.get(collection);
      if (!schema) throw schemaNotFound(collection);
      return create(GetSchemaResponseSchema, { schema: schemaMessage(schema) });
    },
    RemoveSchema: async ({ collection }, context) => {
      replication.checkWritable();
      const seq = await parts.database.schemas.remove(collection);
      log.info({ collection, principal: context.principal.id, seq }, 'schema removed');
      await replication.confirmed(seq, context);
      return create(RemoveSchemaResponseSchema, { seq: BigInt(seq) });
    },
    ListSchemas: async () => {
      const schemas = await parts.database.schemas.list();
      return create(ListSchemasResponseSchema, { schemas: schemas.map(schemaMessage) });
    },
  };
}

function schemaMessage(info: SchemaInfo) {
  const { collection, schema, validate, updatedAt, violationCount } = info;
  return create(CollectionSchemaSchema, {
    collection,
    schema,
    validate,
    updatedAt: timestamp(updatedAt.getTime()),
    violationCount: BigInt(violationCount),
  });
}
