package queue

import (
	"fmt"
	"log/slog"

	"github.com/hibiken/asynq"
)

// Logger returns a logger for asynq that writes its messages to log.
func Logger(log *slog.Logger) asynq.Logger { return asynqLog{log} }

// asynqLog writes asynq's log messages to slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug("asynq", "says", fmt.Sprint(args...)) }

func (l asynqLog) Info(args ...any) { l.log.Info("asynq", "says", fmt.Sprint(args...)) }

func (l asynqLog) Warn(args ...any) { l.log.Warn("asynq", "says", fmt.Sprint(args...)) }

func (l asynqLog) Error(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }

func (l asynqLog) Fatal(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }
