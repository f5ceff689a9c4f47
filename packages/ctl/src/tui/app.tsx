import { Box, Text, useApp, useInput, useStdout, type Key } from 'ink';
import {
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from 'react';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal } from '@millrace/kit/errors';
import { plain, type Paint } from '../render/paint.js';
import { cut, printable, widthOf } from '../render/text.js';
import type { Actions, PreviewMode } from './actions.js';
import { helpLines, keyHelp, keysOf, type Effect } from './commands.js';
import type { LiveData, Snapshot } from './live-data.js';
import { promptKeys, stepOf, textPrompt, type Prompt } from './prompts.js';
import { Preview, usePreview } from './preview.js';
import { countOf, filtered, fitted, partOf, tabs, viewOf, type Tab, type View } from './views.js';

/** Why the screen was closed: to attach to an agent, or to quit. */
export interface Closed {
  readonly attach?: string;
  readonly state: ScreenState;
}

/** Remembered while an agent has the terminal. */
export interface ScreenState {
  readonly tab: Tab;
  readonly selected: Partial<Record<Tab, string>>;
  readonly message: string;
}

export interface AppProps {
  readonly live: LiveData;
  readonly actions: Actions;
  readonly paint: Paint;
  readonly start: ScreenState;
  readonly onClose: (closed: Closed) => void;
}

export function App({ live, actions, paint, start, onClose }: AppProps): ReactNode {
  const { columns, rows } = useSize();
  const whole = useSyncExternalStore(live.subscribe, live.snapshot);
  const [filter, setFilter] = useState('');
  const [mode, setMode] = useState<PreviewMode>('screen');
  const [hasHelp, setHasHelp] = useState(false);
  const snapshot = filtered(whole, filter);
  const [state, setState] = useState(start);
  const [prompt, setPrompt, latestPrompt] = useLatest<Prompt>();
  const [top, setTop] = useState(0);
  useTicks();
  const { exit } = useApp();

  const close = (closed: Omit<Closed, 'state'>): void => {
    onClose({ ...closed, state: { ...state, message: '' } });
    exit();
  };
  const say = (message: string): void => setState((before) => ({ ...before, message }));
  const perform = (run: () => Promise<string>): void => {
    run().then(say, (error: unknown) => say(textOf(error)));
  };
  const apply = (effect: Effect): void => {
    if ('attach' in effect) close({ attach: effect.attach });
    else if ('prompt' in effect) setPrompt(effect.prompt);
    else if ('preview' in effect) setMode(mode === effect.preview ? 'screen' : effect.preview);
    else perform(effect.run);
  };

  const { tab } = state;
  const isFleet = tab === 'Fleet';
  // The preview takes the rest; at 80 columns each status still fits beside a name.
  const listColumns = isFleet ? Math.max(38, Math.min(60, Math.floor(columns * 0.42))) : columns;
  const sheet = { columns: listColumns - 2, paint };
  const view = viewOf(tab, snapshot, systemClock.now(), sheet);
  const selectedAt = selectionIn(view, state.selected[tab]);
  const layout = layoutOf(rows, tab);
  const maxTop = Math.max(0, (view?.rows.length ?? 0) - layout.list);
  const first = isScrolled(view) ? Math.min(top, maxTop) : windowStart(selectedAt, layout.list);

  const current = isFleet ? view?.rows[selectedAt]?.id : undefined;
  const previewHeight = layout.list;
  const lines = usePreview(actions, {
    id: current ?? undefined,
    mode,
    height: previewHeight,
    paint,
  });

  const move = (by: number): void => {
    if (isScrolled(view)) {
      setTop(Math.max(0, Math.min(maxTop, first + by)));
      return;
    }
    const at = Math.max(0, Math.min((view?.rows.length ?? 0) - 1, selectedAt + by));
    const id = view?.rows[at]?.id;
    if (id) setState({ ...state, selected: { ...state.selected, [tab]: id } });
  };
  const show = (next: Tab): void => {
    setTop(0);
    setHasHelp(false);
    setState({ ...state, tab: next, message: '' });
  };

  useLatestInput((input, key) => {
    if (key.ctrl && input === 'c') return close({});
    const open = latestPrompt();
    if (open) {
      const step = stepOf(open, input, key);
      setPrompt(step.prompt);
      if (step.prompt?.kind === 'text') step.prompt.onChange?.(step.prompt.value);
      if (step.run) perform(step.run);
      return;
    }
    if (input === 'q') return close({});
    if (input === 'R') return live.readAll();
    if (input === '?' || (hasHelp && key.escape)) return setHasHelp(!hasHelp);
    if (key.escape) return setMode('screen');
    if (isFleet && input === '/') return setPrompt(filterPrompt(filter, setFilter));
    if (isFleet && input === 'n')
      return setPrompt(textPrompt('Prompt of the new agent', (text) => actions.spawn(text)));
    const by = isFleet && input === 'k' ? undefined : movement(input, key, layout.list);
    if (by !== undefined) return move(by);
    const next = tabFor(input, key, tab);
    if (next) return show(next);
    const command = keysOf[tab].find((each) => each.key === (key.return ? 'return' : input));
    const id = view?.rows[selectedAt]?.id;
    if (!command || !id) return;
    try {
      apply(command.effect(id, actions, snapshot));
    } catch (error) {
      say(textOf(error));
    }
  });

  return (
    <Box flexDirection="column" width={columns} height={layout.height}>
      <Tabs current={tab} snapshot={whole} columns={columns} />
      {hasHelp ? (
        <Help tab={tab} height={layout.list + 1} />
      ) : (
        <Box height={layout.list + 1}>
          <Box width={listColumns}>
            <List
              view={view}
              error={snapshot.errors[partOf[tab]]}
              first={first}
              height={layout.list}
              selectedAt={selectedAt}
              columns={listColumns}
              paint={paint}
            />
          </Box>
          {isFleet && (
            <Preview
              session={snapshot.data.sessions?.find(({ id }) => id === current)}
              mode={mode}
              lines={lines}
              columns={columns - listColumns}
              height={previewHeight}
            />
          )}
        </Box>
      )}
      <Details view={view} at={selectedAt} height={layout.details} columns={columns} />
      <Text wrap="truncate">{statusLine(prompt, state.message, snapshot, paint)}</Text>
      <Text wrap="truncate" dimColor={paint !== plain}>
        {` ${prompt ? promptKeys(prompt) : keyHelp(tab, columns)}`}
      </Text>
    </Box>
  );
}

function filterPrompt(value: string, set: (text: string) => void): Prompt {
  const submit = (text: string) => {
    set(text);
    return Promise.resolve(text.trim() === '' ? '' : `Filter: ${text}`);
  };
  return textPrompt('Filter', submit, { value, mayBeEmpty: true, onChange: set });
}

function Help({ tab, height }: { tab: Tab; height: number }): ReactNode {
  return (
    <Box flexDirection="column" height={height} overflow="hidden">
      {helpLines(tab).map((line) => (
        <Text key={line} wrap="truncate">{`  ${line}`}</Text>
      ))}
    </Box>
  );
}

function Tabs({
  current,
  snapshot,
  columns,
}: {
  current: Tab;
  snapshot: Snapshot;
  columns: number;
}): ReactNode {
  return (
    <Box flexDirection="column" height={2}>
      <Text wrap="truncate">
        {tabs.map((tab, at) => {
          const count = countOf(tab, snapshot);
          const name = ` ${at + 1} ${tab}${count === undefined ? '' : ` ${count}`} `;
          return (
            <Text key={tab} bold={tab === current} inverse={tab === current}>
              {name}
            </Text>
          );
        })}
      </Text>
      <Text>{'─'.repeat(columns)}</Text>
    </Box>
  );
}

interface ListProps {
  readonly view: View | undefined;
  readonly error: string | undefined;
  readonly first: number;
  readonly height: number;
  readonly selectedAt: number;
  readonly columns: number;
  readonly paint: Paint;
}

function List({ view, error, first, height, selectedAt, columns, paint }: ListProps): ReactNode {
  const shown = view?.rows.slice(first, first + height) ?? [];
  const note = error === undefined ? (view ? view.empty : 'Loading ...') : error;
  const notes = shown.length === 0 || error !== undefined ? fitted([note], columns - 2, 3) : [];
  const lines = shown.slice(0, height - notes.length);
  return (
    <Box flexDirection="column" height={height + 1} overflow="hidden">
      {view && view.heading !== '' ? <Text wrap="truncate">{`  ${view.heading}`}</Text> : null}
      {lines.map(({ id, line }, at) => {
        const isSelected = id !== null && first + at === selectedAt;
        const space = ' '.repeat(Math.max(0, columns - 2 - widthOf(line)));
        return (
          <Text key={id ?? first + at} wrap="truncate" inverse={isSelected}>
            {isSelected ? `> ${line}${space}` : `  ${line}`}
          </Text>
        );
      })}
      {notes.map((text) => (
        <Text key={text} wrap="truncate">
          {`  ${error === undefined ? text : paint('bad', text)}`}
        </Text>
      ))}
    </Box>
  );
}

function Details({
  view,
  at,
  height,
  columns,
}: {
  view: View | undefined;
  at: number;
  height: number;
  columns: number;
}): ReactNode {
  if (height === 0) return null;
  const id = view?.rows[at]?.id;
  const lines = view && id ? fitted(view.details(id), columns - 2, height - 1) : [];
  return (
    <Box flexDirection="column" height={height} overflow="hidden">
      <Text>{'─'.repeat(columns)}</Text>
      {lines.map((line, number) => (
        // eslint-disable-next-line react/no-array-index-key
        <Text key={number} wrap="truncate">{`  ${line}`}</Text>
      ))}
    </Box>
  );
}

function statusLine(
  prompt: Prompt | undefined,
  message: string,
  { isLive, lost }: Snapshot,
  paint: Paint,
): string {
  if (prompt?.kind === 'text') return ` ${prompt.label}: ${printable(prompt.value)}▏`;
  if (prompt?.kind === 'confirm') return ` ${printable(prompt.label)} [y/N]`;
  if (prompt?.kind === 'choice') {
    const options = prompt.options.map((label, at) => `[${at + 1}] ${printable(label)}`);
    return ` ${options.join('  ')}`;
  }
  const connection = isLive
    ? paint('ok', 'live')
    : paint('bad', lost === undefined ? 'connecting' : `no connection (${printable(lost)})`);
  return ` ${connection}${message === '' ? '' : `  ${printable(message)}`}`;
}

function textOf(error: unknown): string {
  return cut(error instanceof Refusal ? error.detail : messageOf(error), 500);
}

function selectionIn(view: View | undefined, id: string | undefined): number {
  const at = view?.rows.findIndex((row) => row.id === id) ?? -1;
  return Math.max(0, at);
}

function isScrolled(view: View | undefined): boolean {
  return view?.rows[0]?.id === null;
}

/** Keeps the selected row visible, near the middle of a long list. */
function windowStart(selectedAt: number, height: number): number {
  return selectedAt < height ? 0 : selectedAt - height + 1;
}

function movement(input: string, key: Key, page: number): number | undefined {
  if (key.downArrow || input === 'j') return 1;
  if (key.upArrow || input === 'k') return -1;
  if (key.pageDown) return page;
  if (key.pageUp) return -page;
  if (input === 'g') return -Infinity;
  if (input === 'G') return Infinity;
  return undefined;
}

function tabFor(input: string, key: Key, tab: Tab): Tab | undefined {
  const at = tabs.indexOf(tab);
  if ((key.tab && !key.shift) || key.rightArrow) return tabs[(at + 1) % tabs.length];
  if (key.tab || key.leftArrow) return tabs[(at + tabs.length - 1) % tabs.length];
  return /^[1-9]$/.test(input) ? tabs[Number(input) - 1] : undefined;
}

/** Lines of each area. One line stays free: ink clears the screen when the last one is used. */
function layoutOf(rows: number, tab: Tab): { height: number; list: number; details: number } {
  const height = Math.max(10, rows - 1);
  const details = tab === 'Spend' || tab === 'Fleet' ? 0 : Math.max(4, Math.floor(height / 4));
  // Two lines of tabs, a heading, the status line and the keys.
  return { height, details, list: height - details - 5 };
}

/** State that can be read before it is drawn, because two keys may arrive between two drawings. */
function useLatest<Value>() {
  const [value, setValue] = useState<Value>();
  const latest = useRef<Value>(undefined);
  const set = (next: Value | undefined): void => {
    latest.current = next;
    setValue(next);
  };
  return [value, set, () => latest.current] as const;
}

/**
 * Handles keys with the state that is on the screen: on a busy machine the effect that replaces
 * the handler runs later than the next key arrives.
 */
function useLatestInput(handle: (input: string, key: Key) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  const stable = useCallback((input: string, key: Key) => latest.current(input, key), []);
  useInput(stable);
}

function useSize(): { columns: number; rows: number } {
  const { stdout } = useStdout();
  const read = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 });
  const [size, setSize] = useState(read);
  useEffect(() => {
    const onResize = (): void => setSize(read());
    stdout.on('resize', onResize);
    return () => void stdout.off('resize', onResize);
  }, [stdout]);
  return size;
}

const tickMs = 1_000;

/** Redraws every second, because ages grow without any event. */
function useTicks(): void {
  const [, tick] = useState(0);
  useEffect(() => {
    let timer = systemClock.after(tickMs, run);
    function run(): void {
      tick((before) => before + 1);
      timer = systemClock.after(tickMs, run);
    }
    return () => timer.cancel();
  }, []);
}
