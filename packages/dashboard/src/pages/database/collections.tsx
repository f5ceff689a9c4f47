import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { VirtualTable, type Column } from '../../parts/virtual-table.js';
import { databaseQueries, type CollectionStatus, type NodeStatus } from './api.js';
import { NewCollection } from './new-collection.js';

/** Node status and the list of collections. */
export function Collections() {
  const status = useQuery(databaseQueries.status());
  const [isCreating, setIsCreating] = useState(false);
  useShortcut('n', 'New collection', () => setIsCreating(true));
  return (
    <Page
      title="Database"
      actions={
        <button type="button" className="primary" onClick={() => setIsCreating(true)}>
          New collection
        </button>
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
      {isCreating && (
        <NewCollection
          names={status.data?.collections.map(({ name }) => name) ?? []}
          onClose={() => setIsCreating(false)}
        />
      )}
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
  {
    id: 'name',
    header: 'Collection',
    width: 'minmax(0, 2fr)',
    cell: ({ name }) => (
      <Link href={`/database/${name}`} className="row-link">
        {name}
      </Link>
    ),
  },
  {
    id: 'records',
    header: 'Records',
    width: '6rem',
    numeric: true,
    cell: ({ records }) => count(records),
  },
  {
    id: 'indexes',
    header: 'Indexes',
    width: 'minmax(0, 2fr)',
    wideOnly: true,
    cell: ({ indexes }) =>
      indexes.length === 0 ? (
        <span className="muted">none</span>
      ) : (
        indexes.map(({ name, unique, state }) => (
          <span key={name} className="tag db-index">
            {name}
            {unique && ' unique'}
            {state !== 'ready' && ` (${state})`}
          </span>
        ))
      ),
  },
  {
    id: 'ttl',
    header: 'TTL',
    width: '8rem',
    wideOnly: true,
    cell: ({ default_ttl }) => default_ttl ?? 'none',
  },
];
