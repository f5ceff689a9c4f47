/** Collection of the watched database that has one record per connector, by its name. */
export const positionsCollection = 'millrace_connectors';
