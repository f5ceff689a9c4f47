/** Groups of `ctl` that ask a server and print the answer. */
const groups = /^(?:agent|backend|cost|db|inbox|inspect|pipeline|queue|status|usage|workspace)$/;

/** They serve, need a terminal, follow something, or open the data of a stopped server. */
const needsProcess = /^(?:attach|backup|logs|migrate|restore|serve|top|verify|watch)$/;

const plain = /[\w./:=,@%+!^-]+/;
const word = new RegExp(`(?:'[^']*'|"[^"$\`\\\\]*"|${plain.source})+`, 'g');

/**
 * The arguments of a `ctl` command that gives the same answer in this process as in its own;
 * undefined when it needs a process, or more of a shell than quotes.
 */
export function argumentsOf(command: string): string[] | undefined {
  if (command.replaceAll(word, '').trim() !== '') return undefined;
  const [program = '', ...args] = (command.match(word) ?? []).map(unquoted);
  if (program !== 'millrace' && program !== 'bin/ctl') return undefined;
  const [group = '', action = ''] = args;
  return groups.test(group) && !needsProcess.test(action) ? args : undefined;
}

function unquoted(text: string): string {
  return text.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => {
    return single ?? double ?? '';
  });
}
