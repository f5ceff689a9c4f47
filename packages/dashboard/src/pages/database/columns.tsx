import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
import type { DbRecord } from './api.js';

export function columnsFor(onOpen: (id: string) => void, isNarrow: boolean): Column<DbRecord>[] {
  return [
    {
      id: 'key',
      header: 'Key or id',
      width: isNarrow ? 'minmax(0, 1fr)' : 'minmax(0, 15rem)',
      cell: (record) => (
        <>
          <button type="button" className="row-link db-open" onClick={() => onOpen(record.id)}>
            {nameOf(record)}
          </button>
          {isNarrow && <div className="ellipsis mono muted">{dataText(record)}</div>}
        </>
      ),
    },
    {
      id: 'data',
      header: 'Data',
      width: 'minmax(0, 1fr)',
      wideOnly: true,
      cell: (record) => <span className="mono">{dataText(record)}</span>,
    },
    {
      id: 'rev',
      header: 'Rev',
      width: '4rem',
      numeric: true,
      wideOnly: true,
      cell: ({ rev }) => rev,
    },
    {
      id: 'updated',
      header: 'Updated',
      width: '6rem',
      cell: ({ updated_at }) => <Time at={updated_at} />,
    },
  ];
}

export const nameOf = ({ key, id }: Pick<DbRecord, 'key' | 'id'>): string => key || id;

// More than a row shows on the widest page.
const maxChars = 300;

function dataText({ data }: DbRecord): string {
  return JSON.stringify(data).slice(0, maxChars);
}
