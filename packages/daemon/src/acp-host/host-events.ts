/** Events that the host writes to the output of a session, one JSON line each. */
export type HostEvent =
  | { type: 'prompt'; text: string }
  /** `isRest`: continues the line of the event before, which was written while the agent paused. */
  | { type: 'message' | 'thought'; text: string; isRest?: true }
  | { type: 'tool'; id: string; title: string; kind: string; status: string }
  | { type: 'diff'; path: string; before: string | null; after: string }
  | { type: 'plan'; entries: { content: string; status: string }[] }
  | { type: 'usage'; used: number; size: number }
  | { type: 'permission'; id: string; title: string; body: string }
  | { type: 'answer'; id: string; title: string; label: string }
  | { type: 'stop'; reason: string }
  | { type: 'error'; text: string }
  | { type: 'log'; text: string };

const maxDiffLines = 40;

/** The lines that a person is shown of an event. */
export function hostEventLines(event: HostEvent): string[] {
  switch (event.type) {
    case 'prompt':
      return [`> ${event.text.split('\n')[0]!}`];
    case 'message':
    case 'error':
    case 'log':
      return event.text.trimEnd().split(/\r?\n/);
    case 'thought':
      return event.text
        .trimEnd()
        .split(/\r?\n/)
        .map((line) => `[thought] ${line}`);
    case 'tool': {
      const end = event.status === 'completed' || event.status === 'failed' ? event.status : '';
      return [`[${event.kind}] ${oneLine(event.title)}${end === '' ? '' : `: ${end}`}`];
    }
    case 'diff':
      return [`[diff] ${event.path}`, ...changedLines(event.before ?? '', event.after)];
    case 'plan':
      return event.entries.map(({ content, status }) => `[plan] ${mark(status)} ${content}`);
    case 'usage':
      return [];
    case 'permission':
      return [`[question] ${oneLine(event.title)}`];
    case 'answer':
      return [`[answer] ${event.label}`];
    case 'stop':
      return event.reason === 'end_turn' ? [] : [`[stop] ${event.reason}`];
  }
}

function mark(status: string): string {
  return status === 'completed' ? '[x]' : status === 'in_progress' ? '[>]' : '[ ]';
}

function oneLine(text: string): string {
  return text.split('\n')[0]!;
}

/** What differs between two texts: all between their common start and their common end. */
export function changedLines(before: string, after: string): string[] {
  const old = before === '' ? [] : before.split('\n');
  const fresh = after === '' ? [] : after.split('\n');
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++;
  let end = 0;
  while (
    end < old.length - start &&
    end < fresh.length - start &&
    old[old.length - 1 - end] === fresh[fresh.length - 1 - end]
  ) {
    end++;
  }
  const lines = [
    ...old.slice(start, old.length - end).map((line) => `-${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+${line}`),
  ];
  if (lines.length <= maxDiffLines) return lines;
  return [...lines.slice(0, maxDiffLines), `... ${lines.length - maxDiffLines} more lines`];
}
