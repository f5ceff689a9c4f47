import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface Process {
  pid: number;
  parent: number;
  /** Its command line. */
  line: string;
}

/** Every process of this machine. Small Linux images have no `ps`. */
export function processes(): Process[] {
  return process.platform === 'linux' ? fromProc() : fromPs();
}

function fromProc(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
        // The name of the program stands in brackets, and may hold anything.
        const [state, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return state === 'Z' ? [] : [{ pid: Number(name), parent: Number(parent), line }];
      } catch {
        // It has ended while we looked.
        return [];
      }
    });
}

function fromPs(): Process[] {
  return execFileSync('ps', ['-axo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^ *(\d+) +(\d+) +(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, parent, line]) => ({ pid: Number(pid), parent: Number(parent), line: line! }));
}
