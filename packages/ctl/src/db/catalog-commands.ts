import type { Commands } from '../base/declared.js';
import { collectionArgument } from './record-commands.js';

/** The commands on collections, indexes and schemas. */
export const catalogCommands: Commands = {
  collection: {
    summary: 'Manage collections: list, show, drop, rename',
    description: 'Show and change the collections of the database. This needs admin access.',
    examples: [
      ['ctl db collection list', 'all of them'],
      ['ctl db collection show people', 'one'],
      ['ctl db collection rename people persons', 'rename one'],
    ],
    commands: {
      list: {
        summary: 'List collections',
        description: 'List the collections with their record counts, TTLs and indexes.',
        examples: [
          ['ctl db collection list', 'as a table'],
          ['ctl db collection list --json', 'for scripts: {"collections": [...]}'],
        ],
        run: async () => (await import('./catalog.js')).listCollections,
        isView: true,
      },
      show: {
        summary: 'Show a collection',
        description: 'Show the record count, TTL and indexes of a collection.',
        arguments: [collectionArgument],
        examples: [
          ['ctl db collection show people', 'as a table'],
          ['ctl db collection show people --json', 'for scripts: {"collection": ...}'],
        ],
        exitCodes: { 1: 'no such collection, or failure' },
        run: async () => (await import('./catalog.js')).showCollection,
      },
      drop: {
        summary: 'Drop a collection',
        description:
          'Delete a collection with its records, schema and indexes. On a terminal it asks first.',
        arguments: [collectionArgument],
        options: [['--yes', 'Do not ask']],
        examples: [
          ['ctl db collection drop people', 'after a question'],
          ['ctl db collection drop people --yes --json', 'for scripts: {"deleted": 12, ...}'],
        ],
        exitCodes: { 1: 'no such collection, not confirmed, or failure' },
        run: async () => (await import('./catalog.js')).dropCollection,
      },
      rename: {
        summary: 'Rename a collection',
        description:
          'Move the records, schema and indexes of a collection to a new name. Stop its writers ' +
          'first: until the end the records are in two collections. Repeat it after a failure.',
        arguments: [collectionArgument, ['<new-name>', 'the new name']],
        examples: [['ctl db collection rename people persons', 'rename people']],
        exitCodes: { 1: 'no such collection, the new name is taken, or failure' },
        run: async () => (await import('./catalog.js')).renameCollection,
      },
    },
  },
  index: {
    summary: 'Manage indexes: list, create, drop, advise',
    description: 'Show and change the indexes of the database. This needs admin access.',
    examples: [
      ['ctl db index list', 'all of them'],
      ['ctl db index create people city age', 'one over two fields'],
      ['ctl db index advise', 'which ones slow queries lack'],
    ],
    commands: {
      list: {
        summary: 'List indexes',
        description: 'List the indexes of a collection, or of all collections.',
        arguments: [['[collection]', 'name of the collection']],
        examples: [
          ['ctl db index list', 'of all collections'],
          ['ctl db index list people --json', 'for scripts: {"indexes": [...]}'],
        ],
        exitCodes: { 1: 'no such collection, or failure' },
        run: async () => (await import('./catalog.js')).listIndexes,
        isView: true,
      },
      create: {
        summary: 'Create an index',
        description:
          'Create an index, build it while the database serves, and wait until it is ready.',
        arguments: [
          collectionArgument,
          ['<fields...>', 'dotted paths, in order: city age, or city,age'],
        ],
        options: [
          ['--unique', 'No two records may have the same values'],
          ['--sparse', 'Leave out records without the fields'],
          ['--ci', 'Index text without its case, for eqi and startsWithi'],
          ['--collation <name>', '--collation ci is the same as --ci', { choices: ['ci'] }],
          ['--where <conditions>', "Only records that match: 'age>30', or a condition as JSON"],
          ['--search', 'Index the words of texts, for find --search'],
          ['--language <code>', 'Language of a search index: en, de, fr ... (default: none)'],
          ['--weights <list>', 'How much words of a field count in a search: title=3,body=1'],
          ['--vector', 'Index the vectors in a field, for find --near'],
          ['--dims <number>', 'Length of the vectors'],
          [
            '--metric <name>',
            'How vectors are compared (default: cosine)',
            { choices: ['cosine', 'dot', 'l2'] },
          ],
          ['--int8', 'Store a number of a vector in one byte instead of four'],
          ['--no-wait', 'Return before it is built'],
        ],
        examples: [
          ['ctl db index create people city age', 'over two fields'],
          ['ctl db index create people email --unique --sparse', 'no email twice'],
          ['ctl db index create docs title body --search --language en', 'for find --search'],
          ['ctl db index create docs embedding --vector --dims 384', 'for find --near'],
        ],
        exitCodes: { 1: 'it cannot be built, such as a unique one over equal values, or failure' },
        run: async () => (await import('./indexes.js')).createIndex,
      },
      drop: {
        summary: 'Drop an index',
        description: 'Drop an index. One that the settings of the server declare is refused.',
        arguments: [
          collectionArgument,
          [
            '<fields...>',
            'fields of the index, in order: city age; or its name: search:title,body',
          ],
        ],
        examples: [['ctl db index drop people city age', 'the index over city and age']],
        exitCodes: { 1: 'no such index, or failure' },
        run: async () => (await import('./indexes.js')).dropIndex,
      },
      advise: {
        summary: 'Show which indexes slow queries lack',
        description:
          'Show the indexes that would have served the slow queries since the start of the server. ' +
          'A query is slow after slow_query_ms (default: 200).',
        arguments: [['[collection]', 'name of the collection']],
        examples: [
          ['ctl db index advise', 'for all collections'],
          ['ctl db index advise people --json', 'for scripts: {"advice": [...]}'],
        ],
        exitCodes: { 1: 'no such collection, or failure' },
        run: async () => (await import('./indexes.js')).adviseIndexes,
      },
    },
  },
  schema: {
    summary: 'Validate records: set, show, remove, list',
    description:
      'Manage the JSON Schemas of collections. A schema is stored in the database and validates ' +
      'the writes of every client.',
    examples: [
      ['ctl db schema set people person.json', 'validate every write'],
      ['ctl db schema list', 'which collections have one'],
    ],
    commands: {
      set: {
        summary: 'Set the schema of a collection',
        description:
          'Validate every write of a collection with a JSON Schema (2020-12). If existing records ' +
          'do not match, they are listed and nothing changes, unless you add --force.',
        arguments: [collectionArgument, ['<file>', 'JSON file with the schema, or - for stdin']],
        options: [
          [
            '--validate <mode>',
            'Refuse documents that do not match, or log and count them',
            { choices: ['strict', 'warn'], default: 'strict' },
          ],
          ['--force', 'Set the schema although existing records do not match'],
        ],
        examples: [
          ['ctl db schema set people person.json', 'refuse what does not match'],
          ['ctl db schema set people person.json --validate warn', 'only log and count'],
        ],
        exitCodes: { 1: 'existing records do not match, or failure' },
        run: async () => (await import('./schemas.js')).setSchema,
      },
      show: {
        summary: 'Show the schema of a collection',
        description: 'Print the JSON Schema of a collection.',
        arguments: [collectionArgument],
        examples: [
          ['ctl db schema show people > person.json', 'to a file'],
          ['ctl db schema show people --json', 'for scripts: {"schema": ...}'],
        ],
        exitCodes: { 1: 'the collection has no schema, or failure' },
        run: async () => (await import('./schemas.js')).showSchema,
      },
      remove: {
        summary: 'Remove the schema of a collection',
        description: 'Stop validating the writes of a collection. Its records stay as they are.',
        arguments: [collectionArgument],
        examples: [['ctl db schema remove people', 'allow any document']],
        exitCodes: { 1: 'the collection has no schema, or failure' },
        run: async () => (await import('./schemas.js')).removeSchema,
      },
      list: {
        summary: 'List schemas',
        description: 'List the collections that have a schema, and how many writes violated it.',
        examples: [
          ['ctl db schema list', 'as a table'],
          ['ctl db schema list --json', 'for scripts: {"schemas": [...]}'],
        ],
        run: async () => (await import('./schemas.js')).listSchemas,
        isView: true,
      },
    },
  },
};
