/** JSON Schemas of the database's REST bodies and answers, from its messages. */
import { ScalarType, textOf } from './proto-model.mjs';

const wellKnown = {
  'google.protobuf.Struct': { type: 'object', additionalProperties: true },
  'google.protobuf.Value': {},
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^[0-9]+(\\.[0-9]{1,9})?s$' },
};

// 64-bit numbers are JSON numbers here, not the strings of the standard proto JSON mapping.
const scalars = {
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.DOUBLE]: { type: 'number', format: 'double' },
  [ScalarType.FLOAT]: { type: 'number', format: 'float' },
  [ScalarType.UINT32]: { type: 'integer', minimum: 0, maximum: 4_294_967_295 },
  [ScalarType.UINT64]: { type: 'integer', format: 'int64', minimum: 0 },
};

/**
 * Collects named schemas as they are asked for. `direction` is `in` for what a caller sends
 * (enum values in both spellings, nothing required but by rule) and `out` for what the server
 * answers (scalars and lists are always there, messages and optional fields only when set).
 */
export function schemaCollector(model) {
  const schemas = {};
  const directions = new Map();

  function reference(desc, direction) {
    const known = directions.get(desc.name);
    if (known !== undefined && known !== direction) {
      throw new Error(`${desc.name} is both sent and answered; give each direction its own type`);
    }
    if (known === undefined) {
      directions.set(desc.name, direction);
      schemas[desc.name] = {};
      schemas[desc.name] =
        desc.kind === 'enum' ? enumSchema(desc, direction) : messageSchema(desc, direction);
    }
    return { $ref: `#/components/schemas/${desc.name}` };
  }

  function valueSchema(field, direction) {
    const kind = field.fieldKind === 'list' ? field.listKind : field.fieldKind;
    if (kind === 'enum') return reference(field.enum, direction);
    if (kind === 'message') {
      return wellKnown[field.message.typeName] ?? reference(field.message, direction);
    }
    const scalar = scalars[field.scalar];
    if (scalar === undefined) {
      throw new Error(`${field.parent.name}.${field.name}: REST has no form for this type`);
    }
    const rule = model.ruleOf(field);
    return {
      ...scalar,
      ...(rule.pattern ? { pattern: rule.pattern } : {}),
      ...(rule.maxLength ? { maxLength: rule.maxLength } : {}),
      ...(rule.required && field.scalar === ScalarType.STRING ? { minLength: 1 } : {}),
      ...(rule.values?.length > 0 ? { enum: rule.values } : {}),
    };
  }

  /** Schema of one field, with its comment. */
  function fieldSchema(field, direction) {
    const value = valueSchema(field, direction);
    const shape = field.fieldKind === 'list' ? { type: 'array', items: value } : value;
    return { ...shape, description: textOf(field) };
  }

  function messageSchema(desc, direction, leaveOut = []) {
    const fields = desc.fields.filter(
      (field) => !model.ruleOf(field).grpcOnly && !leaveOut.includes(field.name),
    );
    const required = fields.filter(
      (field) => model.ruleOf(field).required || (direction === 'out' && alwaysPresent(field)),
    );
    return {
      type: 'object',
      description: textOf(desc),
      properties: Object.fromEntries(fields.map((f) => [f.name, fieldSchema(f, direction)])),
      ...(required.length > 0 ? { required: required.map((field) => field.name) } : {}),
      ...(direction === 'in' ? { additionalProperties: false } : {}),
    };
  }

  return { schemas, reference, fieldSchema, messageSchema };
}

/** Fields without presence are always written, also when they are empty or 0. */
function alwaysPresent(field) {
  return field.fieldKind !== 'message' && !field.proto.proto3Optional;
}

function enumSchema(desc, direction) {
  const values = desc.values.filter((value) => value.number !== 0);
  const long = values.map((value) => value.name);
  const short = long.map((name) => name.slice(desc.sharedPrefix.length));
  const shown = direction === 'in' ? short : long;
  const lines = values.map((value, at) => `- \`${shown[at]}\`: ${textOf(value)}`);
  const spelling = direction === 'in' ? `\n\nThe long spelling (\`${long[0]}\`) is taken too.` : '';
  return {
    type: 'string',
    description: `${textOf(desc)}\n\n${lines.join('\n')}${spelling}`,
    enum: direction === 'in' ? [...short, ...long] : long,
  };
}
