import { daemonOperations } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { schemasOf, schemaRef, type Check } from '@millrace/kit/http';
import type { Tool, ToolArgument, ToolRequest } from './tools.js';

type JsonSchema = Record<string, unknown>;

/** The protocol requires an object at the root of a tool's schema. */
export interface ObjectSchema extends JsonSchema {
  type: 'object';
}

export function inputSchemaOf({ input }: Tool): ObjectSchema {
  const properties = Object.entries(input).map(([name, argument]) => [
    name,
    {
      ...('contract' in argument ? standalone(argument.contract) : argument.schema),
      description: argument.description,
    },
  ]);
  return {
    type: 'object',
    properties: Object.fromEntries(properties) as JsonSchema,
    required: neededOf(input),
    additionalProperties: false,
  };
}

export function outputSchemaOf({ output }: Tool): ObjectSchema {
  const schema = standalone(output.contract);
  if (schema['type'] !== 'object') throw new Error(`${output.contract} is not an object`);
  return schema as ObjectSchema;
}

function contractSchemas() {
  return schemasOf(openApiDocument('daemon'));
}

/** Validates the body of a call as REST does, which has rules that the arguments do not show. */
export function bodyCheck(operation: ToolRequest['operation']): Check {
  const { method, path } = daemonOperations[operation];
  const place = `/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/requestBody`;
  return contractSchemas().at(`${place}/content/application~1json/schema`);
}

/** Validates the arguments of each tool against the contract. */
export function argumentChecks(tools: readonly Tool[]): ReadonlyMap<string, Check> {
  const schemas = contractSchemas();
  const schemaOf = (argument: ToolArgument) =>
    'contract' in argument
      ? { $ref: schemaRef(`/components/schemas/${argument.contract}`) }
      : argument.schema;
  return new Map(
    tools.map(({ name, input }) => {
      const properties = Object.entries(input).map(([argument, schema]) => [
        argument,
        schemaOf(schema),
      ]);
      return [
        name,
        schemas.of({
          type: 'object',
          properties: Object.fromEntries(properties) as JsonSchema,
          required: neededOf(input),
          additionalProperties: false,
        }),
      ];
    }),
  );
}

function neededOf(input: Tool['input']): string[] {
  return Object.keys(input).filter((name) => input[name]!.isOptional !== true);
}

/** A schema of the contract with all references inlined. */
function standalone(name: string): JsonSchema {
  const schema = openApiDocument('daemon').components.schemas[name];
  if (!schema) throw new Error(`The contract has no schema ${name}`);
  return inlined(schema) as JsonSchema;
}

const prefix = '#/components/schemas/';

function inlined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inlined);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref: ref, ...rest } = value as JsonSchema;
  const members = Object.entries(rest).filter(([key]) => !key.startsWith('x-'));
  const own = Object.fromEntries(members.map(([key, member]) => [key, inlined(member)]));
  if (typeof ref !== 'string') return own;
  // Siblings of a $ref, such as a description, override the referenced schema.
  return { ...standalone(ref.slice(prefix.length)), ...own };
}
