import { Refusal } from '../base/errors.js';
import type { FieldError } from '../base/errors.js';
import { sentence } from './body.js';
import type { OperationDescription, ParameterDescription, ParameterPlace } from './document.js';
import type { Thing } from './explain.js';
import { schemaRef, type Check, type DocumentSchemas } from './schemas.js';

/** Parses the parameters of one place, or throws a refusal. */
export interface ParameterReader {
  /** `given` maps names to texts, or to lists of texts for repeated names. */
  read(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** See `Check.prepare`. */
  prepare(): void;
}

export interface ParameterOptions {
  place: ParameterPlace;
  fillDefaults: boolean;
  /** The error code for parameters without their own. */
  invalidCode: string | undefined;
}

const things: Record<ParameterPlace, Thing> = {
  path: 'path parameter',
  query: 'query parameter',
  header: 'header',
};

/** Undefined when there are no parameters and unknown ones are allowed. */
export function parameterReader(
  operation: OperationDescription,
  schemas: DocumentSchemas,
  { place, fillDefaults, invalidCode }: ParameterOptions,
): ParameterReader | undefined {
  const parameters = operation.parameters.filter((parameter) => parameter.place === place);
  const refusesUnknown = place === 'query' && !operation.allowsUnknownQuery;
  if (parameters.length === 0 && !refusesUnknown) return undefined;
  for (const parameter of parameters) {
    if ((parameter.invalidCode ?? invalidCode) === undefined) {
      throw new Error(
        `${operation.id}: no code for a bad ${things[place]} ${parameter.name}; ` +
          'give the operation an x-invalid-code or the server a default',
      );
    }
  }
  const fields = parameters.map(fieldOf);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.name, field.schema])),
    required: parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...(refusesUnknown && { additionalProperties: false }),
  };
  const check = schemas.of(schema, { thing: things[place], fillDefaults });
  const codeFor = codeFinder(parameters, invalidCode);
  return {
    read: (given) => {
      const values = refusesUnknown ? readAll(given, fields) : readNamed(given, fields);
      if (!check.accepts(values)) throw refuse(check, values, place, codeFor);
      return values;
    },
    prepare: () => check.prepare(),
  };
}

interface Field {
  name: string;
  /** The name in the request; headers are lowercase. */
  key: string;
  schema: object;
  parse: (given: unknown) => unknown;
}

function fieldOf(parameter: ParameterDescription): Field {
  const { name, place, schema, pointer } = parameter;
  return {
    name,
    key: place === 'header' ? name.toLowerCase() : name,
    schema: {
      $ref: schemaRef(pointer),
      ...('default' in schema && { default: schema['default'] }),
    },
    parse: parserFor(parameter),
  };
}

function readNamed(given: Readonly<Record<string, unknown>>, fields: readonly Field[]) {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const text = given[field.key];
    if (text !== undefined) values[field.name] = field.parse(text);
  }
  return values;
}

/** Unknown names are included, so that the schema rejects them. */
function readAll(given: Readonly<Record<string, unknown>>, fields: readonly Field[]) {
  // Without a prototype, "__proto__" is an ordinary name.
  const values = Object.create(null) as Record<string, unknown>;
  for (const key in given) {
    const field = fields.find((known) => known.key === key);
    values[key] = field ? field.parse(given[key]) : given[key];
  }
  return values;
}

/**
 * Text that is not a number or boolean stays text, so that the schema error names the expected
 * type.
 */
function parserFor(parameter: ParameterDescription): Field['parse'] {
  const types = [parameter.schema['type'] ?? 'string'].flat() as string[];
  if (types.includes('object')) {
    throw new Error(`Parameter ${parameter.name} is an object, which no parameter can be`);
  }
  if (types.includes('array')) {
    const items = (parameter.schema['items'] ?? {}) as { type?: string | string[] };
    const itemTypes = [items.type ?? 'string'].flat();
    const split = parameter.commaSeparated;
    return (given) =>
      [given]
        .flat()
        .flatMap((text) => (split && typeof text === 'string' ? text.split(',') : [text]))
        .map((text) => parseScalar(text, itemTypes));
  }
  return (given) => parseScalar(given, types);
}

const wholeNumber = /^-?(?:0|[1-9]\d{0,63})$/;
const anyNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function parseScalar(given: unknown, types: readonly string[]): unknown {
  if (typeof given !== 'string') return given;
  if (types.includes('integer') && wholeNumber.test(given)) return Number(given);
  if (types.includes('number') && given.length <= 32 && anyNumber.test(given)) {
    return Number(given);
  }
  if (types.includes('boolean') && (given === 'true' || given === 'false')) {
    return given === 'true';
  }
  return given;
}

function codeFinder(parameters: readonly ParameterDescription[], invalidCode: string | undefined) {
  return (fault: FieldError): string => {
    const name = fault.pointer.split('/')[1];
    const parameter = parameters.find((known) => known.name === name);
    const code = parameter?.invalidCode ?? invalidCode ?? parameters[0]?.invalidCode;
    if (code === undefined) throw new Error(`No code for the fault ${fault.message}`);
    return code;
  };
}

function refuse(
  check: Check,
  values: Record<string, unknown>,
  place: ParameterPlace,
  codeFor: (fault: FieldError) => string,
): Refusal {
  const faults = check.faults(values);
  const first = faults[0] ?? { pointer: '', message: 'is not valid' };
  const name = first.pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
  const detail = `The ${things[place]} "${name}" ${sentence(first.message)}`;
  return new Refusal(codeFor(first), detail, { errors: faults });
}
