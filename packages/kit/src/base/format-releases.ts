/**
 * The first release that reads the present format of each kind of data. It is stored with the data,
 * so that an older release can name it when it refuses them. Change it with a format version.
 */
export const formatReleases = {
  /** Data directory of the database. */
  database: '0.2.0',
  /** Rows of the queue in the database. */
  queueRows: '0.2.0',
  /** Tables of the queue in PostgreSQL. */
  queueTables: '0.2.0',
} as const;
