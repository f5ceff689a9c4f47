import { useQuery } from '@tanstack/react-query';
import { read } from '../../api/queries.js';
import { Bar } from '../../parts/bar.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count } from '../../parts/format.js';
import { Fact, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { find, readSchema, type CollectionSchema } from './api.js';
import { inferFields } from './inferred-schema.js';

const sampleSize = 200;

const validations: Readonly<Record<CollectionSchema['validate'], string>> = {
  strict: 'strict: refuses writes that do not match',
  warn: 'warn: stores writes that do not match, and logs them',
};

/** The fields of a collection as its records have them, and the schema that writes must match. */
export function SchemaView({ collection }: { collection: string }) {
  return (
    <>
      <DeclaredSchema collection={collection} />
      <SeenFields collection={collection} />
    </>
  );
}

function DeclaredSchema({ collection }: { collection: string }) {
  const key = ['db-schema', collection];
  const schema = useQuery(read(key, () => readSchema(collection), { refetchInterval: false }));
  return (
    <Panel title="Schema">
      <Loaded query={schema} rows={2}>
        {(found) =>
          found ? (
            <Declared schema={found} />
          ) : (
            <p className="panel-body muted">
              No schema: every JSON object is accepted. Set one with{' '}
              <code>ctl db schema set {collection} schema.json</code>
            </p>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Declared({ schema }: { schema: CollectionSchema }) {
  const { validate, updated_at, violation_count: violations } = schema;
  return (
    <>
      <dl className="facts">
        <Fact name="Validation">{validations[validate]}</Fact>
        <Fact name="Set">
          <Time at={updated_at} />
        </Fact>
        <Fact name="Violations">
          {violations === 0 ? (
            'none since the start of the server'
          ) : (
            <Status tone="warn">{`${count(violations)} since the start of the server`}</Status>
          )}
        </Fact>
      </dl>
      <pre className="panel-body mono db-schema" tabIndex={0} aria-label="JSON Schema">
        {JSON.stringify(schema.schema, undefined, 2)}
      </pre>
    </>
  );
}

function SeenFields({ collection }: { collection: string }) {
  const readSample = async () => (await find(collection, { limit: sampleSize })).records;
  const options = { refetchInterval: false, staleTime: 30_000 } as const;
  const sample = useQuery(read(['db-sample', collection], readSample, options));
  return (
    <Panel title="Fields">
      <Loaded query={sample} empty={<Empty title="This collection has no records." />}>
        {(records) => (
          <>
            <p className="panel-body muted">
              {records.length < sampleSize
                ? 'From all records.'
                : `From the first ${count(records.length)} records.`}
            </p>
            <DataTable
              label="Fields"
              isCards={false}
              columns={columns}
              rows={inferFields(records)}
              rowKey={({ path }) => path}
            />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

const columns: readonly DataColumn<ReturnType<typeof inferFields>[number]>[] = [
  { header: 'Field', className: 'mono', cell: ({ path }) => path },
  { header: 'Types', cell: ({ types }) => types.join(', ') },
  {
    header: 'Records that have it',
    cell: ({ path, percent }) => (
      <span className="db-share">
        <Bar label={`${path}: ${percent}%`} percent={percent} /> {percent}%
      </span>
    ),
  },
];
