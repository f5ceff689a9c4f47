// The built daemon as a process of its own, with the flags of the command line: what
// `ctl daemon serve` does.
import { runDaemon } from '@millrace/daemon/serve';

// Access has tests of its own.
const flags = Object.fromEntries(
  ['--auth=none', ...process.argv.slice(2)].map((arg) => {
    const [name, ...value] = arg.replace(/^--/, '').split('=');
    return [name, value.join('=')];
  }),
);
try {
  process.exitCode = await runDaemon({ flags, environment: process.env });
} catch (error) {
  if (error.name !== 'UsageError') throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
