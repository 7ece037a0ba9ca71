package browser

import "testing"

// smallChart is what a chart of asynqmon says of its bars' width or height where it has no room, as on a phone.
const smallChart = ": A negative value is not valid."

// asynqmon's pages work where they are, and lead to ours and back.
func TestQueues(t *testing.T) {
	t.Parallel()
	s := newScene(newConsole(t))
	tb := s.tab(t)
	tb.allow(smallChart)
	for _, l := range looks {
		tb.as(l)
		tb.open("/queues/")
		tb.find("body", "interactive")
		tb.accessibleIn("queues", "#errand") // the rest is asynqmon's
		tb.keep(out+"/queues-"+l.name+".png", tb.shoot(false))
	}
	tb.as(looks[0])
	tb.open("/tasks/" + s.waiting)
	tb.press(".actions .more > summary")
	tb.press(".menu a[href^='/queues/']")
	tb.find("body", s.waiting)
	tb.find("#errand", "This task")
	tb.accessibleIn("a task's delivery", "#errand")
	tb.keep(out+"/queues-task-light.png", tb.shoot(false))
	tb.press("#errand a[href^='/queues/tasks/']")
	tb.find("h1", "Load fonts")
	tb.open("/queues/")
	tb.press("#errand a[href='/']")
	tb.find("h1", "Tasks")
}
