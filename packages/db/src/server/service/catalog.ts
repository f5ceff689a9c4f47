import { create } from '@bufbuild/protobuf';
import {
  AdviseIndexesResponseSchema,
  CreateIndexResponseSchema,
  DropCollectionResponseSchema,
  DropIndexResponseSchema,
  IndexStatusSchema,
  RenameCollectionResponseSchema,
  CollectionSchemaSchema,
  GetSchemaResponseSchema,
  ListSchemasResponseSchema,
  RemoveSchemaResponseSchema,
  SetSchemaResponseSchema,
} from '@millrace/contract/db';
import type { IndexInfo } from '@millrace/engine/core/core';
import { indexName, type DeclaredIndex } from '@millrace/engine/format/entries';
import type { Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import { badField, timestamp } from './records.js';
import { schemaNotFound, type SchemaInfo } from '@millrace/engine/write/schemas';

type CatalogMethods = Pick<
  UnaryMethods,
  'DropCollection' | 'RenameCollection' | 'CreateIndex' | 'DropIndex' | 'AdviseIndexes'
>;

export function catalogMethods(parts: ServiceParts): CatalogMethods {
  const { replication, log } = parts;
  return {
    DropCollection: async ({ collection }, context) => {
      replication.checkWritable();
      const { deleted, seq } = await parts.database.catalog.drop(collection);
      const principal = context.principal.id;
      log.info({ collection, deleted, principal, seq }, 'collection dropped');
      await replication.confirmed(seq, context);
      return create(DropCollectionResponseSchema, { deleted: BigInt(deleted), seq: BigInt(seq) });
    },
    RenameCollection: async ({ collection, newName }, context) => {
      context.principal.check(newName, 'admin');
      replication.checkWritable();
      const { moved, seq } = await parts.database.catalog.rename(collection, newName);
      const principal = context.principal.id;
      log.info({ collection, newName, moved, principal, seq }, 'collection renamed');
      await replication.confirmed(seq, context);
      return create(RenameCollectionResponseSchema, { moved: BigInt(moved), seq: BigInt(seq) });
    },
    CreateIndex: async (request, context) => {
      replication.checkWritable();
      const { collection, fields, unique, sparse } = request;
      const definition = declaredIndex(request);
      const { index, seq } = await parts.database.catalog.createIndex(collection, definition);
      if (seq > 0) {
        const principal = context.principal.id;
        log.info({ collection, fields, unique, sparse, principal, seq }, 'index created');
        await replication.confirmed(seq, context);
      }
      return create(CreateIndexResponseSchema, { index: indexStatus(index), seq: BigInt(seq) });
    },
    DropIndex: async ({ collection, index }, context) => {
      replication.checkWritable();
      if (index === '') throw badField('index', 'is missing');
      const seq = await parts.database.catalog.dropIndex(collection, index);
      log.info({ collection, index, principal: context.principal.id, seq }, 'index dropped');
      await replication.confirmed(seq, context);
      return create(DropIndexResponseSchema, { seq: BigInt(seq) });
    },
    AdviseIndexes: () =>
      create(AdviseIndexesResponseSchema, {
        advice: parts.slowQueries.advice(parts.database.catalog.collections()).map((each) => ({
          ...each,
          queryCount: BigInt(each.queryCount),
          rowsScanned: BigInt(each.rowsScanned),
          rowsReturned: BigInt(each.rowsReturned),
          lastAt: timestamp(each.lastAt),
        })),
      }),
  };
}

function declaredIndex(request: Request<'CreateIndex'>): DeclaredIndex {
  const { fields, unique, sparse, collation, where, search, language, weights } = request;
  const { vector, dims, metric, storage } = request;
  const other = {
    ...(unique && { unique }),
    ...(sparse && { sparse }),
    ...(collation !== '' && { collation: collation as 'ci' }),
    ...(where !== undefined && { where: where as object }),
    ...(language !== '' && { language }),
    ...(weights !== undefined && { weights: weights as Record<string, number> }),
  };
  if (vector !== '') {
    const how = {
      dims,
      ...(metric !== '' && { metric: metric as 'cosine' }),
      ...(storage !== '' && { storage: storage as 'int8' }),
    };
    return { vector, ...how, ...other, ...(fields.length > 0 && { fields }) };
  }
  if (search.length > 0) return { search, ...other, ...(fields.length > 0 && { fields }) };
  return { fields, ...other };
}

export function indexStatus({ definition, state }: IndexInfo) {
  const { fields, unique = false, sparse = false, collation, where } = definition;
  const { kind, language, weights, dims, metric = 'cosine', storage } = definition;
  return create(IndexStatusSchema, {
    name: indexName(definition),
    fields: [...fields],
    unique,
    sparse,
    state,
    ...(collation !== undefined && { collation }),
    ...(where !== undefined && { where: JSON.stringify(where) }),
    ...(kind !== undefined && { kind }),
    ...(kind === 'search' && { language: language ?? 'none' }),
    ...(dims !== undefined && { dims, metric }),
    ...(storage === 'int8' && { storage }),
    ...(weights !== undefined && { weights: { ...weights } }),
  });
}

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
