import type { ActivityListInput, ActivityListOutput } from 'account-client';
import { deviceLabel } from '../../../../server/shared/texts/device.ts';
import { api } from '../../api.ts';
import { dateTime } from '../../language/in-readers-language.ts';
import { text } from '../../language/texts.ts';
import { usePages } from '../../use-pages.ts';
import { ShowMore } from '../show-more.tsx';
import { DashboardPage } from './dashboard-page.tsx';
import { sentenceOf } from './event-sentences.ts';

const A_PAGE = 20;

export function Activity() {
  return (
    <DashboardPage title={text('dashboard.parts.activity')}>
      {() => (
        <section class="card stack" aria-label={text('dashboard.activity.events')}>
          <Events read={(page) => api.activity.list.query(page)} />
        </section>
      )}
    </DashboardPage>
  );
}

interface EventsProps {
  read(page: NonNullable<ActivityListInput>): Promise<ActivityListOutput>;
}

/** The events of an account, newest first, page by page. */
export function Events({ read }: EventsProps) {
  const { items, ...pages } = usePages((cursor) => read({ limit: A_PAGE, ...(cursor && { cursor }) }));
  return (
    <>
      <ul class="entries">
        {items.map((event) => (
          <li key={event.id}>
            <div>
              <strong>{sentenceOf(event, text)}</strong>
              <p class="hint">{whenAndWhere(event)}</p>
            </div>
          </li>
        ))}
      </ul>
      <ShowMore {...pages} />
    </>
  );
}

const whenAndWhere = ({ at, address, device }: ActivityListOutput['data'][number]): string =>
  address
    ? text('dashboard.activity.fromAddress', { time: dateTime(at), address, device: deviceLabel(device, text) })
    : dateTime(at);
