import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { daemonCodes, daemonOperations } from './daemon.js';
import { databaseDescriptorSet, openApiDocument, openApiYaml } from './documents.js';
import { queueCodes, queueOperations } from './queue.js';

test.each(['queue', 'daemon', 'db'] as const)('the %s document loads, and only once', (name) => {
  const document = openApiDocument(name);
  expect(document.openapi).toMatch(/^3\.1\./);
  expect(openApiDocument(name)).toBe(document);
  expect(parse(openApiYaml(name))).toEqual(document);
});

test.each([
  ['queue', queueCodes, queueOperations],
  ['daemon', daemonCodes, daemonOperations],
] as const)('the operations of the %s answer only with codes of its list', (_, codes, table) => {
  const used = Object.values(table).flatMap((operation): readonly string[] => operation.codes);
  expect(used).not.toEqual([]);
  expect(used.filter((code) => !(code in codes))).toEqual([]);
});

test('the descriptor set serves reflection: whole, imports first, with our comments', () => {
  const set = fromBinary(FileDescriptorSetSchema, databaseDescriptorSet());
  const seen = new Set<string>();
  for (const file of set.file) {
    expect(file.dependency.filter((name) => !seen.has(name))).toEqual([]);
    seen.add(file.name);
  }
  const registry = createFileRegistry(set);
  for (const service of [
    'millrace.db.v1.Database',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
  ]) {
    expect(registry.getService(service)?.typeName).toBe(service);
  }
  const commented = set.file.filter((file) => file.sourceCodeInfo !== undefined);
  expect(commented.map((file) => file.name)).toEqual(['millrace/db/v1/db.proto']);
});
