import type { ComponentChildren } from 'preact';
import { useSessionData } from '../../session/use-session-data.ts';
import { DashboardArrival } from '../dashboard/arrival.tsx';
import { NotFound } from '../not-found.tsx';
import { Unreachable } from '../unreachable.tsx';
import { AdminFrame, AdminWaiting } from './frame.tsx';

interface Props<T> {
  title(data: T): string;
  read(): Promise<T>;
  /** Rendered once `data` is loaded. `reload` resolves once it is loaded again. */
  children: (data: T, reload: () => Promise<void>) => ComponentChildren;
}

/** A page for administrators. Everyone else sees “Page not found”. */
export function AdminPage<T>({ title, read, children }: Props<T>) {
  const { data, refusal, load } = useSessionData(read);
  if (refusal?.code === 'FORBIDDEN' || refusal?.code === 'NOT_FOUND') return <NotFound />;
  // Data that cannot be loaded again stays: it may be beside a secret that is shown once.
  if (refusal && data === undefined) return <Unreachable refusal={refusal} />;
  return (
    <AdminFrame title={data === undefined ? undefined : title(data)}>
      {data === undefined ? (
        <AdminWaiting />
      ) : (
        <>
          <DashboardArrival />
          {children(data, load)}
        </>
      )}
    </AdminFrame>
  );
}
