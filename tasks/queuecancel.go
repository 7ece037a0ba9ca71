package tasks

import "context"

// cancelChannel is where asynq tells its servers of a cancel: from its command line, its Inspector, or an asynqmon that is not ours, which
// asks the desk.
const cancelChannel = "asynq:cancel"

// byQueue is who cancelled there. asynq does not ask who it is.
const byQueue = "the queue's console"

// cancels gives the IDs of deliveries that are cancelled through asynq, until ctx ends. One that is told while Redis is away is lost,
// for asynq as well as for us.
func (q *Queue) cancels(ctx context.Context, heard func(delivery string)) {
	sub := q.redis.Subscribe(ctx, cancelChannel)
	defer sub.Close()
	messages := sub.Channel()
	for {
		select {
		case m, open := <-messages:
			if !open { // the client was closed
				return
			}
			heard(m.Payload)
		case <-ctx.Done():
			return
		}
	}
}

// heedQueue makes asynq's cancel one of ours. By itself it only takes the delivery from its handler and brings it again later, while
// the run, which is detached from that, goes on (hibiken/asynq#532, #968). Every worker hears it and any may write the tombstone: the
// first one counts.
func (w *Worker) heedQueue(ctx context.Context) {
	w.queue.cancels(ctx, func(delivery string) {
		id, err := delivered(ctx, w.store, delivery)
		if err == nil {
			_, err = w.store.Cancel(ctx, id, byQueue, causeUser)
		}
		if err != nil {
			w.log.Warn("cancel task", "run", id, "err", err)
			return
		}
		w.log.Info("task cancelled", "run", id, "by", byQueue)
	})
}
