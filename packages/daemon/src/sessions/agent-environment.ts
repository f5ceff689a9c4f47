/** The environment of an agent: the variables of its backend, and its session id for `ctl`. */
export function agentEnvironment(
  variables: Readonly<Record<string, string>>,
  { id, dataDir, cwd }: { id: string; dataDir: string; cwd: string },
): Record<string, string> {
  return { ...variables, PWD: cwd, MILLRACE_AGENT_ID: id, MILLRACE_DATA_DIR: dataDir };
}
