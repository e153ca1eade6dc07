const migrations = {
  '0001-accounts': async () => (await import('./0001-accounts.ts')).Accounts,
  '0002-identities': async () => (await import('./0002-identities.ts')).Identities,
  '0003-uploads': async () => (await import('./0003-uploads.ts')).Uploads,
  '0004-proven-methods': async () => (await import('./0004-proven-methods.ts')).ProvenMethods,
  '0005-mail-requests': async () => (await import('./0005-mail-requests.ts')).MailRequests,
  '0006-search': async () => (await import('./0006-search.ts')).Search,
  '0007-upload-usage': async () => (await import('./0007-upload-usage.ts')).UploadUsages,
  '0008-no-update-time': async () => (await import('./0008-no-update-time.ts')).NoUpdateTime,
  '0009-sessions': async () => (await import('./0009-sessions.ts')).Sessions,
  '0010-trace-of-mails': async () => (await import('./0010-trace-of-mails.ts')).TraceOfMails,
};

/** In the order in which they run. Listed rather than discovered: nothing is read from disk at start. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** The same with their classes, which only a start that has to run some of them loads. */
export const loadMigrations = () =>
  Promise.all(Object.entries(migrations).map(async ([name, load]) => ({ name, class: await load() })));
