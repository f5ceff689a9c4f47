import { runMcpStdio } from '@millrace/daemon/mcp';
import { createLog, logLevelFrom } from '@millrace/kit/log';
import { daemonAnswer, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { version } from '../base/version.js';

/** Serves the daemon's tools over stdin and stdout until the client disconnects. */
export async function serveMcp(flags: DaemonFlags, tools: Tools): Promise<void> {
  const { env } = tools.terminal;
  const log = createLog({ level: logLevelFrom(env, 'warn'), component: 'ctl', pretty: false });
  await tools.lifecycle.serve(async (stopped) => {
    const abort = new AbortController();
    void stopped.then(() => abort.abort());
    await runMcpStdio({
      version: version(),
      log,
      signal: abort.signal,
      // Located on every call: the daemon may start, move or change its token meanwhile.
      callApi: ({ method, path, body }) => daemonAnswer(flags, tools, method, path, body),
    });
  });
}
