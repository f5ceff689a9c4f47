import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { UsageError } from '../base/errors.js';
import { parseYamlFile, parseYamlText } from './yaml-file.js';

const tokens = z.object({
  tokens: z.array(
    z.object({
      id: z.string().regex(/^[a-z0-9-]+$/),
      principal: z.string().min(1),
      token: z.string().min(8).optional(),
      grants: z.array(
        z.object({ queue: z.string(), role: z.enum(['submitter', 'operator', 'admin']) }),
      ),
    }),
  ),
});

function mistakeIn(text: string, schema: z.ZodType = tokens, secret = false): string {
  try {
    parseYamlText('tokens.yaml', text, schema, { secret });
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as UsageError).message;
  }
  throw new Error('expected a mistake');
}

describe('a file on disk', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'millrace-yaml-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const write = (name: string, content: string | Uint8Array) => {
    const file = join(directory, name);
    writeFileSync(file, content);
    return file;
  };

  test('is read and checked', () => {
    const file = write('good.yaml', 'tokens:\n  - {id: a, principal: ann, grants: []}\n');
    expect(parseYamlFile(file, tokens)).toEqual({
      tokens: [{ id: 'a', principal: 'ann', grants: [] }],
    });
  });

  test('that is not there, a directory, below a file, huge or binary is refused in one line', () => {
    const folder = join(directory, 'folder');
    mkdirSync(folder);
    const small = write('small', '');
    const cases = [
      [join(directory, 'none.yaml'), 'no such file'],
      [folder, 'is a directory, not a file'],
      [join(small, 'x'), 'a part of this path is not a directory'],
      [write('huge', new Uint8Array(4 * 2 ** 20 + 1)), 'is larger than 4 MiB'],
      [write('utf16', Buffer.from('\uFEFFa: 1', 'utf16le')), 'is not UTF-8 text; save it as UTF-8'],
    ] as const;
    for (const [file, text] of cases) {
      expect(() => parseYamlFile(file, tokens)).toThrow(new UsageError(`${file}: ${text}`));
    }
  });

  // Nothing is unreadable for root, so root becomes somebody else for a moment.
  test.skipIf(!process.seteuid)('that we may not read is refused with our uid', () => {
    const file = write('locked.yaml', 'a: 1');
    chmodSync(file, 0o000);
    chmodSync(directory, 0o755);
    const root = process.geteuid!() === 0;
    if (root) process.seteuid!(65_534);
    try {
      expect(() => parseYamlFile(file, tokens)).toThrow(
        /locked\.yaml: cannot be read by uid \d+: permission denied$/,
      );
    } finally {
      if (root) process.seteuid!(0);
    }
  });
});

describe('schema errors name the line', () => {
  test.each([
    [
      'tokens:\n  - id: a\n    principal: 5\n    grants: []\n',
      'tokens.yaml:3: tokens[0].principal must be text that is not empty, not 5',
    ],
    [
      'tokens:\n  - id: a\n    grants: []\n',
      'tokens.yaml:2: tokens[0].principal is missing; it must be text that is not empty',
    ],
    [
      'tokens:\n- id: A\n  principal: x\n  grants: []',
      'tokens.yaml:2: tokens[0].id must be text that matches ^[a-z0-9-]+$, not "A"',
    ],
    [
      'tokens:\n- {id: a, principal: x, grants: [{queue: q, role: boss}]}',
      'tokens.yaml:2: tokens[0].grants[0].role must be one of submitter, operator or admin, not "boss"',
    ],
    [
      'tokens:\n- {id: a, principle: x, grants: []}',
      'tokens.yaml:2: unknown key "tokens[0].principle"; did you mean "principal"?\n' +
        'tokens.yaml:2: tokens[0].principal is missing; it must be text that is not empty',
    ],
    [
      'tokens:\n- {id: a, principal: x, token: short, grants: []}',
      'tokens.yaml:2: tokens[0].token must be text of at least 8 characters, not this text',
    ],
    ['', 'tokens.yaml: tokens is missing; it must be a list'],
    ['tokens:', 'tokens.yaml:1: tokens must be a list, not empty'],
    ['[]', 'tokens.yaml:1: the document must be a map, not a list'],
  ])('%j', (text, expected) => {
    expect(mistakeIn(text)).toBe(expected);
  });

  test('a strict zod schema does not report a key twice', () => {
    const strict = z.strictObject({ name: z.string() });
    expect(mistakeIn('name: x\nnaem: y', strict)).toBe(
      'tokens.yaml:2: unknown key "naem"; did you mean "name"?',
    );
  });

  test('of the forms that a value may have, the one that was meant is explained', () => {
    const auth = z.object({
      auth: z.discriminatedUnion('type', [
        z.strictObject({ type: z.literal('none') }),
        z.strictObject({ type: z.literal('header'), name: z.string() }),
      ]),
      port: z.union([z.int().min(1), z.object({ from: z.int() })]).optional(),
    });
    expect(mistakeIn('auth: {type: header, name: 3}', auth)).toBe(
      'tokens.yaml:1: auth.name must be text, not 3',
    );
    expect(mistakeIn('auth: {type: haeder}', auth)).toBe(
      'tokens.yaml:1: auth.type must be none or header, not "haeder"',
    );
    expect(mistakeIn('auth: {type: header, name: a, nane: 1}', auth)).toBe(
      'tokens.yaml:1: unknown key "auth.nane"; did you mean "name"?',
    );
    expect(mistakeIn('auth: {type: none, name: 1}', auth)).toBe(
      'tokens.yaml:1: unknown key "auth.name"',
    );
    expect(mistakeIn('auth: {type: none}\nport: {from: a}', auth)).toContain('port.from must be');
    expect(mistakeIn('auth: {type: none}\nport: a', auth)).toBe(
      'tokens.yaml:2: port must be a whole number of at least 1 or a map, not "a"',
    );
  });

  test('in a file of secrets no value is shown', () => {
    const secrets = z.object({ secrets: z.array(z.object({ value: z.string() })) });
    expect(mistakeIn('secrets: [{value: 12345}]', secrets, true)).toBe(
      'tokens.yaml:1: secrets[0].value must be text, not this number',
    );
    expect(mistakeIn('secrets: [{value: "hunter2}]\n', secrets, true)).not.toContain('hunter2');
  });

  test('unknown keys can be let through with a warning', () => {
    const file = parseYamlText('a.yaml', 'x: 1\ny: 2', z.object({ x: z.int() }), {
      unknownKeys: 'warn',
    });
    expect(file.value).toEqual({ x: 1 });
    expect(file.warnings).toEqual(['a.yaml:2: unknown key "y"']);
  });

  test('a later check can ask for the place of anything', () => {
    const file = parseYamlText(
      'tokens.yaml',
      'tokens:\n  - id: a\n    principal: x\n    grants: []\n',
      tokens,
    );
    expect(file.at('tokens', 0, 'principal')).toBe('tokens.yaml:3');
    expect(file.at('tokens', 0)).toBe('tokens.yaml:2');
    expect(file.at('tokens', 7)).toBe('tokens.yaml:1');
    expect(file.at('other')).toBe('tokens.yaml');
  });
});

describe('syntax errors name line and column and show an excerpt', () => {
  test.each([
    [
      'a: 1\nlimits: max: 3\n',
      'tokens.yaml:2:9: not valid YAML: nested mappings are not allowed in compact mappings\n' +
        '  2 | limits: max: 3\n' +
        '    |         ^',
    ],
    [
      'a: 1\nb: 2\na: 3\n',
      'tokens.yaml:3:1: not valid YAML: this key is given twice\n  3 | a: 3\n    | ^',
    ],
    [
      'a:\n\tb: 1\n',
      'tokens.yaml:2:1: not valid YAML: indentation must be spaces, not tabs\n  2 |  b: 1\n    | ^',
    ],
    [
      'a: 1\n---\nb: 1\n',
      'tokens.yaml:2:1: not valid YAML: a second document starts here, and only one is read\n  2 | ---\n    | ^',
    ],
    [
      'a: *x\n',
      'tokens.yaml:1:4: not valid YAML: no anchor &x comes before this alias\n  1 | a: *x\n    |    ^',
    ],
    [
      '? [a]\n: 1\n',
      'tokens.yaml:1:3: not valid YAML: a key must be a word\n  1 | ? [a]\n    |   ^',
    ],
    [
      '__proto__: 1\n',
      'tokens.yaml:1:1: not valid YAML: __proto__ cannot be a key\n  1 | __proto__: 1\n    | ^',
    ],
  ])('%j', (text, expected) => {
    expect(mistakeIn(text)).toBe(expected);
  });

  test.each(['a: "x', 'a: [1, 2', '{', 'a: !custom 1', 'a: b: c', '@x', 'a: &x [*x]', ': 1'])(
    '%j',
    (text) => {
      expect(mistakeIn(text)).toMatch(/^tokens\.yaml:\d+:\d+: not valid YAML: .+/);
    },
  );

  test('a line that holds a secret is not shown', () => {
    const message = mistakeIn('token: "hunter2\n');
    expect(message).toMatch(/^tokens\.yaml:\d+:\d+: not valid YAML: /);
    expect(message).not.toContain('hunter2');
  });

  test('a line with a URL that names a user is not shown', () => {
    const message = mistakeIn('storage: postgres://u:hun/te@r2@h/d\n bad: [\n');
    expect(message).toMatch(/^tokens\.yaml:\d+:\d+: not valid YAML: /);
    expect(message).not.toContain('r2');
  });

  test('aliases work, but cannot be stacked into a bomb', () => {
    const anything = z.record(z.string(), z.unknown());
    const { value } = parseYamlText('a.yaml', 'a: &x {n: 1}\nb: *x\nc: [*x, *x]\n', anything);
    expect(value).toEqual({ a: { n: 1 }, b: { n: 1 }, c: [{ n: 1 }, { n: 1 }] });

    const levels = 'abcdefghi'.split('');
    const bomb = levels.map((name, index) => {
      const below = index === 0 ? '"lol"' : `*${levels[index - 1]}`;
      return `${name}: &${name} [${Array.from({ length: 9 }, () => below).join(',')}]`;
    });
    expect(mistakeIn(bomb.join('\n'), anything)).toContain('aliases expand to more than 10000');
  });

  test('nesting has an end', () => {
    const anything = z.unknown();
    expect(mistakeIn('['.repeat(102) + ']'.repeat(102), anything)).toContain('nested too deep');
    expect(mistakeIn('['.repeat(50_000), anything)).toContain('not valid YAML');
  });

  test('no text makes the reader fail with anything but a UsageError', () => {
    const pieces =
      'a|b: |- |\n|  |\t|{|}|[|]|,|: |&a |*a|>|"|\'|#|!!str |?|---|%|<<: |1|\r\n|\uFEFF|\0';
    const piece = fc.constantFrom('|', ...pieces.split('|'));
    const text = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 40 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, (yaml) => {
        try {
          parseYamlText('x.yaml', yaml, z.unknown());
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('what was written as YAML comes back as the same value', () => {
    const key = fc.string().filter((name) => name !== '__proto__');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(key, value, { noNullPrototype: true }), (written) => {
        const text = JSON.stringify(written, null, 2);
        expect(parseYamlText('x.yaml', text, z.unknown()).value).toEqual(written);
      }),
    );
  });
});
