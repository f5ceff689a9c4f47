import { ApiError } from '@millrace/client';
import { useState, type ReactNode } from 'react';
import { Bar } from '../../parts/bar.js';
import { ChangeTable } from '../../parts/changes.js';
import { Chart } from '../../parts/chart.js';
import { Choice } from '../../parts/choice.js';
import { DataTable } from '../../parts/data-table.js';
import { Dialog } from '../../parts/dialog.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { count } from '../../parts/format.js';
import { Graph, type GraphNode } from '../../parts/graph.js';
import { Copy, Id } from '../../parts/id.js';
import { Figure, Page, Panel } from '../../parts/page.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { TimeField } from '../../parts/time-field.js';
import { toast } from '../../parts/toast.js';
import './gallery.css';

const tones: readonly Tone[] = ['good', 'busy', 'calm', 'warn', 'bad', 'off'];
const id = '01JCZV5N3M8K4W2QX7T9RBHD6E';
const times = Array.from({ length: 30 }, (_, index) => 1_800_000_000 + index * 60);
const wave = (size: number) =>
  times.map((_, index) => Math.round(size * (2 + Math.sin(index / 3))));
const rows = [
  { name: 'mail', status: 'good', tasks: 12_345, at: '2026-01-05T09:00:00Z' },
  { name: 'a queue with a long name that is cut', status: 'bad', tasks: 7, at: null },
] as const;
const nodes: readonly GraphNode[] = tones.map((tone, index) => ({
  id: tone,
  name: `node ${tone}`,
  tone,
  status: tone,
  after: index === 0 ? [] : [tones[Math.floor((index - 1) / 2)]!],
}));

/** Every part in every state, of a development build: `#/gallery`. */
export default function GalleryPage() {
  const [view, setView] = useState<'table' | 'board'>('table');
  const [selected, setSelected] = useState<string | undefined>('busy');
  const [open, setOpen] = useState<'dialog' | 'form' | 'failed' | undefined>();
  const close = () => setOpen(undefined);
  return (
    <Page title="Gallery" actions={<button type="button">Action of the page</button>}>
      <Panel title="States and figures" actions={<button type="button">Action of a panel</button>}>
        <Row>
          {tones.map((tone) => (
            <Status key={tone} tone={tone}>
              {tone}
            </Status>
          ))}
        </Row>
        <Row>
          <Figure name="Figure" value={count(12_345)} note="with a note" />
          <Figure name="Unknown" value="–" />
          <Id value={id} />
          <Copy text={id} name="id" />
          <Time at="2026-01-05T09:00:00Z" />
          <Time at={null} />
        </Row>
        <Row>
          <Bar label="30 %" percent={30} />
          <Bar label="80 %, warning" percent={80} tone="warn" />
          <Bar label="100 %, full" percent={100} tone="bad" />
          <Bar label="unknown" percent={null} />
        </Row>
      </Panel>
      <Panel title="Buttons and fields">
        <Row>
          {['', 'primary', 'danger', 'plain', 'small'].map((kind) => (
            <button key={kind} type="button" className={kind}>
              {kind || 'button'}
            </button>
          ))}
          <button type="button" disabled>
            disabled
          </button>
        </Row>
        <Row>
          {[false, true].map((isTabs) => (
            <Choice
              key={String(isTabs)}
              label={isTabs ? 'Tabs' : 'Chips'}
              isTabs={isTabs}
              value={view}
              options={{ table: 'Table', board: 'Board' }}
              onChange={setView}
            />
          ))}
        </Row>
        <Row>
          <label className="field">
            Text
            <input placeholder="8 (default)" />
          </label>
          <label className="field">
            List
            <select>
              <option>one</option>
            </select>
          </label>
          <TimeField label="Time" value="2026-01-05T09:00:00Z" onChange={() => {}} />
        </Row>
      </Panel>
      <Panel title="Tables">
        <DataTable
          label="Rows"
          columns={[
            { header: 'Name', cell: ({ name }) => name },
            { header: 'State', cell: ({ status }) => <Status tone={status}>{status}</Status> },
            { header: 'Tasks', numeric: true, cell: ({ tasks }) => count(tasks) },
            { header: 'Updated', cell: ({ at }) => <Time at={at} /> },
          ]}
          rows={rows}
          rowKey={({ name }) => name}
        />
        <ChangeTable changes={[{ path: 'retry.max_attempts', before: '8', after: '3' }]} />
        <Empty title="No rows yet.">Say what would be here, and what to do.</Empty>
      </Panel>
      <Panel title="Charts">
        <Chart
          label="Lines, and a gap"
          times={times}
          series={[
            { label: 'succeeded', values: wave(20), tone: 'good' },
            {
              label: 'dead',
              values: wave(3).map((n, at) => (at % 10 < 3 ? null : n)),
              tone: 'bad',
            },
          ]}
          format={count}
        />
        <Chart
          label="Series without a meaning"
          times={times}
          series={[1, 2, 3, 4, 5, 6].map((n) => ({ label: `series ${n}`, values: wave(n) }))}
          format={count}
        />
        <Chart
          label="Bars"
          times={times}
          series={[{ label: 'sum', values: wave(3), kind: 'bars' }]}
          format={count}
        />
      </Panel>
      <Panel title="Graph">
        <Graph label="Nodes" nodes={nodes} selected={selected} onSelect={setSelected} />
      </Panel>
      <Panel title="Waiting and failing">
        <Loading rows={2} />
        <Failure
          error={new ApiError(503, { detail: 'The queue is away.' })}
          onRetry={() => toast('good', 'Again.')}
        />
      </Panel>
      <Panel title="Dialogs and notes">
        <Row>
          <button type="button" onClick={() => setOpen('dialog')}>
            Open a dialog
          </button>
          <button type="button" onClick={() => setOpen('form')}>
            Open a form
          </button>
          <button type="button" onClick={() => setOpen('failed')}>
            Open a form that failed
          </button>
          <button type="button" onClick={() => toast('good', 'It worked.')}>
            Good note
          </button>
          <button type="button" onClick={() => toast('bad', 'It failed. Run `ctl status`.')}>
            Bad note
          </button>
        </Row>
      </Panel>
      {open === 'dialog' && (
        <Dialog title="A dialog" onClose={close}>
          <p>Its text.</p>
        </Dialog>
      )}
      {(open === 'form' || open === 'failed') && (
        <FormDialog
          title="Delete a queue"
          submitLabel="Delete 3 tasks"
          dangerous
          error={
            open === 'failed'
              ? new ApiError(409, { detail: 'The queue is not paused.' })
              : undefined
          }
          onSubmit={close}
          onClose={close}
        >
          <label className="field">
            Name
            <input name="name" />
          </label>
        </FormDialog>
      )}
    </Page>
  );
}

function Row({ children }: { children: ReactNode }) {
  return <div className="gallery-row">{children}</div>;
}
