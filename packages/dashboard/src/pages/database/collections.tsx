import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { DialogButton } from '../../parts/controls.js';
import { count } from '../../parts/format.js';
import { Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { column, VirtualTable, type Column } from '../../parts/virtual-table.js';
import { databaseQueries, type CollectionStatus, type NodeStatus } from './api.js';
import { NewCollection } from './new-collection.js';

/** Node status and the list of collections. */
export function Collections() {
  const status = useQuery(databaseQueries.status());
  return (
    <Page
      title="Database"
      actions={
        <DialogButton className="primary" label="New collection" shortcut="n">
          {(onClose) => (
            <NewCollection
              names={status.data?.collections.map(({ name }) => name) ?? []}
              onClose={onClose}
            />
          )}
        </DialogButton>
      }
    >
      <Loaded query={status}>
        {(node) => (
          <>
            <Figures node={node} />
            {node.collections.length === 0 ? (
              <Empty title="No collections yet.">
                The first record creates a collection. Create one here, or with{' '}
                <code>{'ctl db insert people \'{"name":"Ada"}\''}</code>
              </Empty>
            ) : (
              <VirtualTable
                label="Collections"
                columns={columns}
                rows={node.collections}
                rowKey={({ name }) => name}
                narrowRowHeight={48}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

const roleTones: Readonly<Record<NodeStatus['role'], Tone>> = {
  leader: 'good',
  follower: 'busy',
  fenced: 'bad',
};

function Figures({ node }: { node: NodeStatus }) {
  const records = node.collections.reduce((sum, { records: size }) => sum + size, 0);
  return (
    <div className="figures">
      <Figure
        name="Role"
        value={<Status tone={roleTones[node.role]}>{node.role}</Status>}
        note={node.role === 'follower' ? `${count(node.lag)} commits behind` : null}
      />
      <Figure name="Collections" value={count(node.collections.length)} />
      <Figure name="Records" value={count(records)} />
      <Figure name="Commits" value={count(node.seq)} />
      <Figure name="Followers" value={count(node.followers.length)} />
      <Figure
        name="Durability"
        value={node.durability}
        note={node.durability === 'full' ? 'acknowledged writes are on disk' : null}
      />
    </div>
  );
}

const columns: readonly Column<CollectionStatus>[] = [
  column('Collection', 'minmax(0, 2fr)', ({ name }) => (
    <Link href={`/database/${name}`} className="row-link">
      {name}
    </Link>
  )),
  column('Records', '6rem', ({ records }) => count(records), { numeric: true }),
  column('Indexes', 'minmax(0, 2fr)', (row) => <IndexTags indexes={row.indexes} />, {
    wideOnly: true,
  }),
  column('TTL', '8rem', ({ default_ttl }) => default_ttl ?? 'none', { wideOnly: true }),
];

function IndexTags({ indexes }: Pick<CollectionStatus, 'indexes'>) {
  if (indexes.length === 0) return <span className="muted">none</span>;
  return indexes.map(({ name, unique, state }) => (
    <span key={name} className="tag db-index">
      {name}
      {unique && ' unique'}
      {state !== 'ready' && ` (${state})`}
    </span>
  ));
}
