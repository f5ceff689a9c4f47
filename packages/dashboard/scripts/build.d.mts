export function buildDashboard(options?: {
  force?: boolean;
}): Promise<{ built: boolean; site: string }>;
