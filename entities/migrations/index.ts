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
  '0011-activity': async () => (await import('./0011-activity.ts')).Activity,
  '0012-email-changes': async () => (await import('./0012-email-changes.ts')).EmailChanges,
  '0013-identity-email': async () => (await import('./0013-identity-email.ts')).IdentityEmail,
  '0014-removals': async () => (await import('./0014-removals.ts')).Removals,
  '0015-known-devices': async () => (await import('./0015-known-devices.ts')).KnownDevices,
  '0016-second-factors': async () => (await import('./0016-second-factors.ts')).SecondFactors,
  '0017-administration': async () => (await import('./0017-administration.ts')).Administration,
  '0018-invitations': async () => (await import('./0018-invitations.ts')).Invitations,
  '0019-consents': async () => (await import('./0019-consents.ts')).Consents,
  '0020-languages': async () => (await import('./0020-languages.ts')).Languages,
};

/** In the order in which they run. Listed rather than discovered: nothing is read from disk at start. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** The same with their classes, which only a start that has to run some of them loads. */
export const loadMigrations = () =>
  Promise.all(Object.entries(migrations).map(async ([name, load]) => ({ name, class: await load() })));
