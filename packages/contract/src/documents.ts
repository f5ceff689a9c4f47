/**
 * The contract's documents as servers hand them out and load them: read from disk when asked
 * for, once. For Node alone.
 */
import { readFileSync } from 'node:fs';

export type DocumentName = 'queue' | 'daemon' | 'db';

/** As much of an OpenAPI document as its readers share; the rest is JSON. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly [part: string]: unknown;
  };
  readonly [extension: string]: unknown;
}

// Seen from src/ and from dist/ alike, the package is one folder up.
const home = new URL('../', import.meta.url);

const yamlFiles: Record<DocumentName, string> = {
  queue: 'queue.openapi.yaml',
  daemon: 'daemon.openapi.yaml',
  db: 'src/generated/db.openapi.yaml',
};

const parsed = new Map<DocumentName, OpenApiDocument>();

/** The document with its `$ref`s; every caller gets the same object, so treat it as frozen. */
export function openApiDocument(name: DocumentName): OpenApiDocument {
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const text = readFileSync(new URL(`src/generated/${name}.openapi.json`, home), 'utf8');
  const document: OpenApiDocument = JSON.parse(text);
  parsed.set(name, document);
  return document;
}

/** The document as people read it, comments included. */
export function openApiYaml(name: DocumentName): string {
  return readFileSync(new URL(yamlFiles[name], home), 'utf8');
}

/**
 * The database's files as a serialized google.protobuf.FileDescriptorSet, imports first and with
 * the comments of db.proto: what server reflection answers from.
 */
export function databaseDescriptorSet(): Uint8Array {
  return readFileSync(new URL('src/generated/db.binpb', home));
}
